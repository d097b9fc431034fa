"""`gpupool top`: rows out of what is known, and the live screen, driven by keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.cli.output.text import width_of
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


def test_a_filter_takes_all_words_anywhere() -> None:
    rows = rows_of(now(), PODS)
    assert [row.name for row in chosen(rows, "name", "RESEARCH p1")] == ["p1"]
    assert chosen(rows, "name", "nobody") == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("sort", SORTS)
def test_every_view_has_every_order(view: str, sort: str) -> None:
    rows = chosen(rows_of(now(), view), sort)
    assert (
        rows == chosen(rows, sort, backwards=True)[::-1] or len({SORTS[sort](r) for r in rows}) > 0
    )
    assert len(table_of(view, rows).document()["items"]) == len(rows)


@given(st.one_of(st.none(), st.floats(allow_nan=False)), st.integers(1, 40))
def test_a_bar_has_its_width(part: float | None, width: int) -> None:
    assert width_of(bar(part, width)) == width


def test_a_spark_line_shows_gaps() -> None:
    assert spark([0.0, None, 0.5, 1.0]) == "▁·▅█"


class Feed:
    unread, problem = 0, ""

    def now(self) -> Now:
        return now(50)


class Past:
    async def points(self, *_: object) -> None:
        raise NoHistory("nothing yet")


async def test_keys_change_view_order_and_filter() -> None:
    pytest.importorskip("textual")
    from textual.widgets import Static

    from gpupool.cli.top_screen import Lines, TopScreen

    screen = TopScreen(Feed(), Past(), PODS, "util", [])  # type: ignore[arg-type]
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
