"""`gpupool top`: rows out of what is known, and the live screen, driven by keys."""

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gpupool.cli import top
from gpupool.cli.output.layout import Layout
from gpupool.cli.output.text import table_lines, width_of
from gpupool.cli.top_rows import (
    CARDS,
    COLUMNS,
    NODES,
    PODS,
    SORTS,
    VIEWS,
    NodeCards,
    Now,
    bar,
    busy,
    chosen,
    fields_of,
    rows_of,
    spark,
    table_of,
)
from gpupool.core.gpu import Card, CardHealth, CardShare
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.database import NoHistory
from gpupool.history.facts import Held
from gpupool.history.samples import Sample


def now(nodes: int = 2) -> Now:
    """Nodes with two cards each; the first card of each is shared, the second not read."""
    cards, held, readings = {}, [], {}
    for n in range(nodes):
        uuid = f"GPU-{n}-0"
        health = CardHealth.CORDONED if n else CardHealth.HEALTHY
        cards[f"n{n}"] = NodeCards(
            "pool", (Card(0, uuid, "V100", 16130), Card(1, f"GPU-{n}-1", "V100", 16130, health))
        )
        share = CardShare(uuid, 0, 3, 3226, 15)
        one = Held(
            "research", f"p{n}", "main", f"u{n}", "Job/x", "ann", f"n{n}", (share,), 0, 3, 0, None
        )
        held.append(one)
        use = ContainerUse("research", f"p{n}", "main", 1000, sm_percent=10 * n, idle_s=60.0 * n)
        readings[uuid] = CardReading(
            uuid, 1000, sm_percent=10 * n, power_mw=50_000, containers=(use,)
        )
    return Now(cards, held, readings)


def test_a_card_that_nobody_read_is_unknown_and_comes_last() -> None:
    rows = chosen(rows_of(now(), CARDS), "util")
    assert [row.percent for row in rows] == [10, 0, None, None]
    assert "unknown" in COLUMNS[CARDS][4].text(rows[-1])
    assert fields_of(CARDS, rows[-1])["smPercent"] is None


def test_a_node_is_the_sum_of_its_cards() -> None:
    [first, second] = chosen(rows_of(now(), NODES), "name")
    assert (first.cards, first.given, first.used_mib, first.state) == (2, 0.2, 1000, "healthy")
    assert second.state == "cordoned"


def test_a_pod_shows_its_share_and_how_long_it_is_idle() -> None:
    row = chosen(rows_of(now(), PODS), "idle")[0]
    assert (row.name, row.given, row.used_mib, row.total_mib) == ("p1", 0.2, 1000, 3226)
    assert fields_of(PODS, row)["idleSeconds"] == 60.0


def test_two_containers_of_a_pod_on_one_card_show_their_own_use() -> None:
    share = CardShare("GPU-a", 0, 3, 3226, 15)
    names = ("first", "second")
    held = [
        Held("research", "p", name, "u", "Job/x", "", "n0", (share,), 0, 3, 0, None)
        for name in names
    ]
    uses = tuple(
        ContainerUse("research", "p", name, 100 * at, uid="u", sm_percent=10 * at)
        for at, name in enumerate(names, 1)
    )
    read = CardReading("GPU-a", 300, containers=uses)
    rows = rows_of(Now({}, held, {"GPU-a": read}), PODS)
    assert [(row.used_mib, row.percent) for row in rows] == [(100, 10), (200, 20)]


def test_a_pod_with_two_cards_uses_both() -> None:
    shares = tuple(CardShare(f"GPU-{n}", n, 3, 3226, 15) for n in range(3))
    held = Held("research", "p", "main", "u", "Job/x", "", "n0", shares, 0, 9, 0, None)
    readings = {}
    for at in (0, 1):  # nobody told of the third
        power = 1000 * (at + 1)
        use = ContainerUse(
            "research", "p", "main", 50, sm_percent=20 * at, idle_s=9.0 - at, power_mw=power
        )
        readings[f"GPU-{at}"] = CardReading(f"GPU-{at}", 50, containers=(use,))
    [row] = rows_of(Now({}, [held], readings), PODS)
    assert (row.percent, row.used_mib, row.idle_s, row.watts) == (10, 100, 8.0, 3.0)


def test_a_filter_takes_all_words_anywhere() -> None:
    rows = rows_of(now(), PODS)
    assert [row.name for row in chosen(rows, "name", "RESEARCH p1")] == ["p1"]
    assert chosen(rows, "name", "nobody") == []


@pytest.mark.parametrize(
    ("options", "is_text"),
    [
        ([], False),
        (["pods", "--sort", "memory"], False),
        (["-o", "table"], True),
        (["-o", "wide"], True),
        (["--wide"], True),
        (["--no-headers"], True),
    ],
)
def test_whoever_asks_for_text_gets_it_on_a_terminal_too(
    options: list[str], is_text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    monkeypatch.setattr(
        top.command, "callback", lambda **_: found.append(top._has_asked_for_text())
    )
    assert CliRunner().invoke(top.command, options).exit_code == 0
    assert found == [is_text]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("sort", SORTS)
def test_every_view_has_every_order(view: str, sort: str) -> None:
    rows = chosen(reversed(rows_of(now(3), view)), sort)
    assert rows == chosen(rows, sort, backwards=True)[::-1]
    names = [row.name for row in rows]
    if SORTS[sort]:
        figures = [getattr(row, SORTS[sort]) for row in rows]
        known = [each for each in figures if each is not None]
        assert figures == sorted(known, reverse=True) + [None] * (len(figures) - len(known))
        assert all(a < b for a, b, x, y in zip(names, names[1:], figures, figures[1:]) if x == y)  # noqa: B905
    assert len(table_of(view, rows).document()["items"]) == len(rows)


@pytest.mark.parametrize(
    ("view", "text", "words"),
    [
        ("pods", "", "No pod has a card."),
        ("cards", "", "No node has cards."),
        ("pods", "research", 'No pod with a card has "research" in its line.'),
        ("cards", "T4", 'No card has "T4" in its line.'),
        ("nodes", "b", 'No node with cards has "b" in its line.'),
    ],
)
def test_an_empty_table_tells_whether_a_filter_made_it_so(view: str, text: str, words: str) -> None:
    assert table_of(view, [], text).missing() == words


@given(st.one_of(st.none(), st.floats(allow_nan=False)), st.integers(1, 40))
def test_a_bar_has_its_width(part: float | None, width: int) -> None:
    assert width_of(bar(part, width)) == width


def test_a_spark_line_shows_gaps() -> None:
    assert spark([0.0, None, 0.5, 1.0]) == "▁·▅█"


def test_the_spark_line_of_a_share_is_as_high_as_its_bar() -> None:
    half = Sample(seen=60_000, given=12_000, told=12_000, used=30_000)  # a fifth of a card
    assert busy(half, 1) == 0.5
    assert busy(half._replace(told=6_000, used=15_000), 1) == 0.5  # half of it is unknown
    assert busy(half._replace(given=120_000, told=120_000), 2) == 0.25  # two whole cards
    assert busy(half._replace(told=0), 1) is None
    assert busy(Sample(seen=60_000, have=120_000, told=120_000, used=30_000), 2) == 0.25


class Feed:
    unread, problem = 0, ""

    def now(self) -> Now:
        return now(50)


async def test_what_is_known_is_made_anew_only_when_something_changed() -> None:
    from gpupool.cli.top_feed import Feed as RealFeed
    from tests.history.day import node_object, pod_object, pods

    feed = RealFeed(None, "kube-system")  # type: ignore[arg-type]
    first = feed.now()
    assert feed.now() is first
    feed._node(None, node_object(0))
    assert list(feed.now().nodes) == ["n0"]
    some = pods()[0]
    feed._pod(None, pod_object(some, some.begin_s))
    assert [each.pod for each in feed.now().held] == [some.name]
    feed._pod(pod_object(some, some.begin_s), None)
    assert feed.now().held == []
    assert list(first.nodes) == []  # what was given out stays as it is


async def test_nodes_that_there_was_no_time_to_ask_are_shown_as_before_and_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gpupool.cli import top_feed
    from gpupool.core.readings import NodeReadings
    from gpupool.readings import Readings
    from tests.history.day import node_object, uuid

    def told(node: int, used: int) -> NodeReadings:
        return NodeReadings(f"n{node}", 1.0, (CardReading(uuid(node, 0), used),))

    rounds = [
        Readings({"n0": told(0, 1)}, {"n1": "late", "n2": "late"}, frozenset({"n1", "n2"})),
        Readings({"n1": told(1, 2)}, {"n2": "down", "n0": "late"}, frozenset({"n0"})),
        Readings({}, {"n0": "down", "n1": "late", "n2": "late"}, frozenset({"n1", "n2"})),
    ]
    asked: list[tuple[str, ...]] = []

    async def read(_: object, nodes: list[str], _namespace: str) -> Readings:
        asked.append(tuple(nodes))
        return rounds[len(asked) - 1]

    monkeypatch.setattr(top_feed, "read_nodes", read)
    feed = top_feed.Feed(None, "kube-system")  # type: ignore[arg-type]
    for node in (0, 1, 2):
        feed._node(None, node_object(node))
    seen = []
    for _ in rounds:
        await feed._read()
        known = {key: card.memory_used_mib for key, card in feed.now().readings.items()}
        seen.append((known, feed.unread, feed.problem))
    assert seen == [
        ({uuid(0, 0): 1}, 2, "late"),
        ({uuid(0, 0): 1, uuid(1, 0): 2}, 1, "down"),
        ({uuid(1, 0): 2}, 2, "down"),  # an agent that does not answer any more is unknown at once
    ]
    assert asked == [("n0", "n1", "n2"), ("n1", "n2", "n0"), ("n2", "n0", "n1")]


class Past:
    async def points(self, *_: object) -> None:
        raise NoHistory("nothing yet")


async def test_a_filter_may_look_like_markup() -> None:
    pytest.importorskip("textual")
    from textual.widgets import Static

    from gpupool.cli.top_screen import Choice, TopScreen

    screen = TopScreen(Feed(), Past(), Choice(PODS))  # type: ignore[arg-type]
    async with screen.run_test(size=(120, 20)) as pilot:
        await pilot.press("slash", *"[", "slash", *"x] [b")
        await pilot.pause()
        assert "filter: [/x] [b" in str(screen.query_one("#head", Static).render())


async def test_the_live_screen_begins_with_the_filter_of_the_command() -> None:
    pytest.importorskip("textual")
    from gpupool.cli.top_screen import Choice, Lines, TopScreen

    screen = TopScreen(Feed(), Past(), Choice(PODS, "name", "p4"))  # type: ignore[arg-type]
    async with screen.run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        lines = screen.query_one(Lines)
        assert [row.name for row in lines.rows] == ["p4", *(f"p4{n}" for n in range(10))]
        await pilot.press("escape")
        assert len(lines.rows) == 50


@pytest.mark.parametrize("view", VIEWS)
def test_use_and_memory_fit_into_80_columns(view: str) -> None:
    long = [
        row._replace(name=f"a-name-as-long-as-they-are-{row.name}", node=f"cn-x.{row.node * 9}")
        for row in rows_of(now(3), view)
    ]
    lines = table_lines(table_of(view, long), Layout(80, live=True))
    assert all(width_of(line) <= 80 for line in lines)
    assert {"UTIL", "MEMORY"} <= set(lines[0].split())


async def test_a_pod_that_does_nothing_has_a_colour() -> None:
    pytest.importorskip("textual")
    from gpupool.cli.top_screen import Choice, Lines, TopScreen

    screen = TopScreen(Feed(), Past(), Choice(PODS))  # type: ignore[arg-type]
    async with screen.run_test(size=(120, 80)) as pilot:
        await pilot.pause()
        lines = screen.query_one(Lines)
        colours = {
            row.name: str(next(iter(lines.render_line(at + 1))).style)
            for at, row in enumerate(lines.rows)
        }
    assert "yellow" in colours["p0"]
    assert "yellow" not in colours["p9"]


async def test_a_line_that_changes_is_drawn_anew() -> None:
    pytest.importorskip("textual")
    from gpupool.cli.top_screen import Choice, Lines, TopScreen

    screen = TopScreen(Feed(), Past(), Choice(PODS))  # type: ignore[arg-type]
    async with screen.run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        lines = screen.query_one(Lines)
        rows = lines.rows
        first = lines.render_line(1).text
        rows[0] = rows[0]._replace(name="another")  # in the same list, as good as at its address
        lines.show(PODS, rows)
        assert "another" in lines.render_line(1).text != first


async def test_keys_change_view_order_and_filter() -> None:
    pytest.importorskip("textual")
    from textual.widgets import Static

    from gpupool.cli.top_screen import Choice, Lines, TopScreen

    screen = TopScreen(Feed(), Past(), Choice(PODS))  # type: ignore[arg-type]
    async with screen.run_test(size=(120, 20)) as pilot:
        lines = screen.query_one(Lines)
        await pilot.pause()
        assert len(lines.rows) == 50
        assert lines.row is not None
        assert lines.row.name == "p49"
        await pilot.press("down", "down")
        assert lines.row.name == "p47"
        await pilot.press("end")
        assert lines.row.name == "p0"
        await pilot.press("2")
        assert lines.view == CARDS
        assert len(lines.rows) == 100
        await pilot.press("slash", "n", "7", "enter")
        assert {row.node for row in lines.rows} == {"n7"}
        await pilot.press("escape", "1", "s", "s")
        assert len(lines.rows) == 50
        assert "50 nodes by given" in str(screen.query_one("#head", Static).render())
        assert "nothing yet" in str(screen.query_one("#detail", Static).render())
