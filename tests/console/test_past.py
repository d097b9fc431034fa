"""Charts of the past: averages over known time, gaps where nobody looked."""

import asyncio
import time
from pathlib import Path

from gpupool.console.chart import HEIGHT, WIDTH, Series, chart
from gpupool.console.past import (
    _busy_of,
    _busy_percent,
    _given_gib,
    _share_gib,
    _used_gib,
    _used_of_container,
)
from gpupool.console.sight import HistoryOf, Sight
from gpupool.history.database import NoHistory
from gpupool.history.pages import FileHistory
from gpupool.history.reader import Points
from gpupool.history.samples import Sample
from gpupool.history.series import Key, Kind
from gpupool.history.store import Entry, Store

MINUTE_MS = 60_000


def points(*values: Sample | None) -> Points:
    return Points(60, 1_700_000_000, values)


def gib(amount: int) -> Sample:
    """A card of which so much was given and half of that used, for a minute."""
    return Sample(
        seen=MINUTE_MS,
        have=MINUTE_MS,
        given=MINUTE_MS,
        told=MINUTE_MS,
        used=MINUTE_MS // 4,
        memory_given=60 * 1024 * amount,
        memory_used=30 * 1024 * amount,
    )


ALLOCATED = Series("Allocated", "allocated", _given_gib)


def test_what_nobody_saw_is_a_gap_and_not_zero() -> None:
    found = chart("id", "Memory", "GiB", points(gib(5), gib(5), None, gib(10)), (ALLOCATED,))
    # Two stretches: the pen is set down twice.
    assert found.lines[0].path.count("M") == 2
    assert found.lines[0].path.startswith("M0.0 ")
    assert found.lines[0].path.endswith(f"H{WIDTH}.0")
    assert [values for _, values in found.rows] == [("5.0",), ("5.0",), ("–",), ("10",)]


def test_a_chart_without_a_known_point_says_so() -> None:
    for values in ((), (None, None)):
        found = chart("id", "Memory", "GiB", points(*values), (ALLOCATED,))
        assert not found.is_known
        assert found.lines[0].path == ""


def test_a_share_begins_with_its_pod_and_follows_a_resize() -> None:
    waits = Sample(seen=MINUTE_MS, asked=MINUTE_MS // 5)
    half = gib(3)._replace(seen=MINUTE_MS // 2, memory_given=30 * 1024 * 3)  # it came then
    share = Series("Share", "share", _share_gib)
    shown = points(None, waits, half, gib(3), gib(6))
    found = chart("id", "Memory", "GiB", shown, (share,))
    assert [values for _, values in found.rows] == [("–",), ("–",), ("3.0",), ("3.0",), ("6.0",)]
    assert found.lines[0].path.startswith(f"M{2 * WIDTH / 5:.1f} ")


def test_percents_are_of_a_hundred() -> None:
    busy = Series("Utilisation", "busy", lambda _: 1.0)
    found = chart("id", "Utilisation", "%", points(gib(1)), (busy,))
    assert (found.top, found.lines[0].path) == ("100", f"M0.0 {HEIGHT * 0.99:.1f}H{WIDTH}.0")


def test_a_long_chart_has_a_short_table() -> None:
    found = chart("id", "Memory", "GiB", points(*[gib(2)] * 400), (ALLOCATED,))
    assert len(found.rows) <= 24
    assert {values for _, values in found.rows} == {("2.0",)}


def test_figures_are_averages_over_the_time_of_which_agents_told() -> None:
    whole = gib(8)
    assert (_given_gib(whole), _used_gib(whole), _busy_percent(whole)) == (8.0, 4.0, 25.0)
    # Agents told of half of the time only, and used the same in it.
    half = whole._replace(told=MINUTE_MS // 2, used=MINUTE_MS // 8, memory_used=15 * 1024 * 8)
    assert (_used_gib(half), _busy_percent(half)) == (4.0, 25.0)
    silent = whole._replace(told=0, used=0, memory_used=0)
    assert (_given_gib(silent), _used_gib(silent), _busy_percent(silent)) == (8.0, None, None)


def test_a_container_is_busy_in_the_time_of_its_kernels_however_small_its_share() -> None:
    fifth = Sample(
        seen=MINUTE_MS,
        given=MINUTE_MS // 5,
        told=MINUTE_MS // 5,
        used=MINUTE_MS // 2,
        memory_given=60 * 3226,
        memory_used=60 * 1024,
    )
    assert _busy_of(fifth, 1) == 50.0
    assert _used_of_container(fifth) == 1.0
    assert _busy_of(Sample(), 1) is None


def asked(history_of: HistoryOf | None, name: str = "") -> tuple[Points | None, str]:
    async def ask() -> tuple[Points | None, str]:
        clock = asyncio.get_running_loop().time
        sight = Sight(None, None, clock, history_of)  # type: ignore[arg-type]
        return await sight.points(Kind.CLUSTER, name, 3600)

    return asyncio.run(ask())


def test_the_past_comes_from_the_store_of_reports(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    # A whole minute of the clock: in a part of one, whole numbers are less exact.
    until = int(time.time()) // 60 * MINUTE_MS
    with Store(path) as store:
        store.add(until - MINUTE_MS, until, {Key(Kind.CLUSTER, ""): Entry(gib(8))})
    found, why = asked(lambda _: FileHistory(path))
    assert found is not None
    assert why == ""
    assert [_given_gib(sample) for sample in found.values if sample] == [8.0]


def test_without_history_there_is_a_reason(tmp_path: Path) -> None:
    assert asked(None) == (None, "this console was started without one")
    found, why = asked(lambda _: FileHistory(tmp_path / "none.sqlite"))
    assert found is None
    assert why

    class Silent(FileHistory):
        async def points(self, *_: object, **__: object) -> Points:
            raise NoHistory("no collector runs")

    assert asked(lambda _: Silent(tmp_path)) == (None, "no collector runs")
