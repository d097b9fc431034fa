"""Tables and forms: what an address shows, and what is wrong with what was typed."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gpupool.console.parts.cells import Bar, Text
from gpupool.console.parts.form import Field, FieldKind, complaints, typed_values
from gpupool.console.parts.table import ROWS_A_PAGE, Choice, Column, Table, view


@dataclass(frozen=True)
class Thing:
    name: str
    pool: str
    size: int


TABLE = Table[Thing](
    columns=(
        Column("name", "Name", lambda row: Text(row.name), lambda row: row.name),
        Column("size", "Size", lambda row: Text(str(row.size)), lambda row: row.size, True),
        Column("note", "Note", lambda row: Text("")),
    ),
    key=lambda row: row.name,
    words=lambda row: f"{row.name} {row.pool}",
    choices=(Choice("pool", "Pool", lambda row: row.pool),),
    order="name",
    empty="Nothing there.",
)
THINGS = [Thing("b", "cgpu", 1), Thing("a", "cgpu", 3), Thing("c", "plain", 2)]


def names(query: dict[str, str]) -> list[str]:
    return [line.key for line in view(TABLE, THINGS, query).lines]


def test_the_address_says_what_is_shown_and_in_which_order() -> None:
    assert names({}) == ["a", "b", "c"]
    assert names({"sort": "size"}) == ["b", "c", "a"]
    assert names({"sort": "-size"}) == ["a", "c", "b"]
    assert names({"q": "CGPU"}) == ["a", "b"]
    assert names({"q": "cgpu b"}) == ["b"]
    assert names({"pool": "plain"}) == ["c"]
    assert names({"pool": "plain", "q": "a"}) == ["c"]


def test_an_address_that_makes_no_sense_shows_the_list() -> None:
    for odd in ({"sort": "note"}, {"sort": "x"}, {"page": "-1"}, {"page": "9" * 99}):
        assert names(odd) == ["a", "b", "c"]
    assert names({"pool": "gone"}) == []


def test_a_filter_counts_and_stays_visible() -> None:
    (offered,) = view(TABLE, THINGS, {"pool": "gone"}).offered
    assert offered.values == (("cgpu", "cgpu", 2), ("gone", "gone", 0), ("plain", "plain", 1))
    assert offered.chosen == "gone"


def test_a_heading_turns_the_order_around_and_keeps_the_filter() -> None:
    heads = view(TABLE, THINGS, {"q": "a", "sort": "size", "page": "2"}).heads
    assert [head.sorted for head in heads] == ["", "ascending", ""]
    assert heads[1].href == "?q=a&sort=-size"
    assert heads[2].href == ""


def test_long_lists_come_in_pages() -> None:
    many = [Thing(f"n{number:04}", "", number) for number in range(2 * ROWS_A_PAGE + 1)]
    first, last = view(TABLE, many, {}), view(TABLE, many, {"page": "99"})
    assert (first.page, first.pages, len(first.lines), first.next) == (1, 3, 100, "?page=2")
    assert (last.page, len(last.lines), last.previous, last.next) == (3, 1, "?page=2", "")


things = st.builds(Thing, st.text(max_size=3), st.sampled_from("ab"), st.integers(0, 3))


@given(
    st.lists(things, max_size=30, unique_by=lambda each: each.name),
    st.sampled_from(["", "name", "-name", "size", "-size"]),
    st.text(max_size=2),
)
def test_sorting_and_filtering_lose_and_invent_nothing(
    rows: list[Thing], order: str, text: str
) -> None:
    shown = view(TABLE, rows, {"sort": order, "q": text})
    wanted = text.casefold().split()
    kept = {each.name for each in rows if all(w in TABLE.words(each).casefold() for w in wanted)}
    assert {line.key for line in shown.lines} == kept
    assert shown.found == len(kept)


def test_a_bar_is_never_longer_than_its_track() -> None:
    assert [Bar(part, whole, "").percent for part, whole in ((1, 3), (5, 3), (1, 0))] == [
        33,
        100,
        0,
    ]


FIELDS = (
    Field("name", "Name", is_required=True, longest=5),
    Field("count", "Count", FieldKind.NUMBER, least=0, most=9),
    Field("os", "OS", FieldKind.CHOICE, choices=(("a", "A"), ("b", "B"))),
    Field("label", "Label", check=lambda text: "" if "=" in text else "wanted key=value"),
)


def wrong(**typed: str) -> dict[str, str]:
    return complaints(FIELDS, typed_values(FIELDS, typed))


def test_each_field_says_what_is_wrong_with_it() -> None:
    assert wrong(name="x") == {}
    assert wrong(name=" ") == {"name": "missing"}
    assert wrong(name="123456") == {"name": "too long"}
    for number in ("10", "-1", "1.5", "x", "9" * 30, "٣٣"):
        assert wrong(name="x", count=number) == {"count": "not a number"}
    assert wrong(name="x", count="9", os="c") == {"os": "not offered"}
    assert wrong(name="x", label="k") == {"label": "wanted key=value"}
