"""The store: sums are exact at every level, after restarts, gaps, damage and with few places."""

import os
import signal
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.history.database import NoHistory
from gpupool.history.levels import LEVELS, level_for_chart, level_for_sum, slots
from gpupool.history.reader import Reader
from gpupool.history.samples import FIELDS, PEAK, Sample, together
from gpupool.history.series import MOST, Key, Kind
from gpupool.history.store import Entry, Store

DAY = 86400
START = 1_700_006_400  # an hour begins
CARD = Key(Kind.CARD, "GPU-a")

figures = st.integers(0, 10**14)
samples = st.builds(Sample, *[figures] * FIELDS).map(lambda each: each._replace(seen=each.seen + 1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def reader(path: Path, now_s: float) -> Reader:
    return Reader(path, lambda: now_s)


def total(path: Path, now_s: float, since_s: float, kind: Kind = Kind.CARD) -> dict[str, Sample]:
    found = reader(path, now_s)
    sums = {series.name: sample for series, sample in found.sums(kind, since_s).of}
    found.close()
    return sums


@given(st.integers(0, 10**6), st.integers(1, 10**7), st.sampled_from(LEVELS))
def test_the_slots_of_a_stretch_are_the_whole_stretch(
    begin: int, length: int, level: object
) -> None:
    found = list(slots(level, begin, begin + length))  # type: ignore[arg-type]
    assert found[0].begin == 0
    assert found[-1].end == length
    assert all(a.end == b.begin for a, b in pairwise(found))
    for slot in found:
        start_ms = slot.start_s * 1000
        assert start_ms <= begin + slot.begin < begin + slot.end
        assert begin + slot.end <= start_ms + level.step_s * 1000  # type: ignore[attr-defined]


# What happens: a stretch of time with a sample, a gap without one, or a restart.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 7_200_000), samples),
        st.tuples(st.just("gap"), st.integers(1, 7_200_000), st.none()),
        st.tuples(st.just("restart"), st.just(0), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_no_sum_is_lost_or_counted_twice_at_any_level(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, Sample | None]]
) -> None:
    path = tmp_path_factory.mktemp("history") / "history.sqlite"
    store, now, added = Store(path), START * 1000, []
    for what, length, sample in steps:
        if what == "restart":
            store.close()
            store = Store(path)
        elif sample is not None:
            store.add(now, now + length, {CARD: Entry(sample)})
            added.append(sample)
        now += length
    store.close()
    expected = together(added)
    connection = sqlite3.connect(path)
    levels = [n for n, level in enumerate(LEVELS) if now // 1000 - START <= level.keep_s]
    for level in levels:
        assert _raw_sum(connection, level) == (expected if added else None)
    connection.close()


def _raw_sum(connection: sqlite3.Connection, level: int) -> Sample | None:
    from gpupool.history.blocks import block_figures
    from gpupool.history.samples import sample_of

    rows = connection.execute("SELECT data FROM blocks WHERE level = ?", (level,)).fetchall()
    return together(sample_of(block_figures(data)[0]) for (data,) in rows) if rows else None


def test_what_nobody_saw_is_unknown_and_not_zero(path: Path) -> None:
    with Store(path) as store:
        for minute in (0, 1, 4):  # nobody looked at 2 and 3
            begin = (START + 60 * minute) * 1000
            store.add(begin, begin + 60_000, {CARD: Entry(Sample(seen=60_000))})
    points = reader(path, START + 300).points(Kind.CARD, "GPU-a", START, START + 300)
    assert points.step_s == 60
    assert [each is not None for each in points.values] == [True, True, False, False, True]


def test_a_series_that_takes_the_place_of_another_does_not_get_its_past(path: Path) -> None:
    most = {**MOST, Kind.CONTAINER: 1}
    old, new = Key(Kind.CONTAINER, "a/old/c"), Key(Kind.CONTAINER, "a/new/c")
    with Store(path, most) as store:
        store.add(START * 1000, START * 1000 + 60_000, {old: Entry(Sample(seen=60_000, used=5))})
    with Store(path, most) as store:
        begin = START * 1000 + 60_000
        store.add(begin, begin + 60_000, {new: Entry(Sample(seen=60_000, used=7))})
    assert total(path, START + 120, START, Kind.CONTAINER) == {
        "a/new/c": Sample(seen=60_000, used=7)
    }
    assert total(path, START + DAY, START, Kind.CONTAINER)["a/new/c"].used == 7


def test_a_series_that_is_seen_now_does_not_fall_out(path: Path) -> None:
    keys = [Key(Kind.CONTAINER, f"a/{n}/c") for n in range(3)]
    with Store(path, {**MOST, Kind.CONTAINER: 2}) as store:
        entries = {key: Entry(Sample(seen=1)) for key in keys}
        store.add(START * 1000, START * 1000 + 60_000, entries)
        assert store.refused == 1
        store.add(START * 1000 + 60_000, START * 1000 + 120_000, entries)
    found = total(path, START + 120, START, Kind.CONTAINER)
    assert {name: sample.seen for name, sample in found.items()} == {"a/0/c": 2, "a/1/c": 2}


def test_each_level_keeps_its_time_and_no_more(path: Path) -> None:
    with Store(path) as store:
        for hour in range(0, 100 * 24, 7):
            begin = (START + 3600 * hour) * 1000
            store.add(begin, begin + 60_000, {CARD: Entry(Sample(seen=60_000))})
    now = START + 3600 * 100 * 24
    connection = sqlite3.connect(path)
    for number, level in enumerate(LEVELS):
        [oldest] = connection.execute(
            "SELECT min(start_s) FROM blocks WHERE level = ?", (number,)
        ).fetchone()
        assert now - level.keep_s - 8 * 3600 <= oldest
    connection.close()


FAR = 40 * 365 * DAY  # a machine whose clock has lost its battery, or the other way round


def _minutes(store: Store, first_s: int, minutes: int, key: Key = CARD) -> None:
    for minute in range(minutes):
        at = (first_s + 60 * minute) * 1000
        store.add(at, at + 60_000, {key: Entry(Sample(seen=60_000, used=1))})


@pytest.mark.parametrize("restarts", [False, True])
def test_a_clock_that_jumps_ahead_and_back_does_not_empty_the_history(
    path: Path, restarts: bool
) -> None:
    store = Store(path)
    _minutes(store, START, 120)
    if restarts:
        store.close()
        store = Store(path)
    _minutes(store, START + FAR, 5)
    _minutes(store, START + 7500, 5)
    store.close()
    assert total(path, START + 8000, START)["GPU-a"].used == 125


def test_a_clock_that_was_ahead_does_not_keep_old_things_for_ever(path: Path) -> None:
    gone = Key(Kind.CARD, "GPU-gone")
    with Store(path) as store:
        _minutes(store, START, 2, gone)
        _minutes(store, START + FAR, 2, gone)
        _minutes(store, START + 300, 90)
        _minutes(store, START + 100 * DAY, 90)
    assert [each.name for each in reader(path, START).series(Kind.CARD)] == ["GPU-a"]


def test_a_clock_that_is_really_late_forgets_after_an_hour(path: Path) -> None:
    with Store(path) as store:
        _minutes(store, START, 2, Key(Kind.CARD, "GPU-old"))
        _minutes(store, START + 100 * DAY, 62)
    assert [each.name for each in reader(path, START).series(Kind.CARD)] == ["GPU-a"]


def test_what_happens_after_the_clock_was_set_back_is_not_hidden(path: Path) -> None:
    with Store(path) as store:
        _minutes(store, START + FAR, 2)  # the first time that anything is seen
        _minutes(store, START, 5)
    assert total(path, START + 300, START)["GPU-a"].used == 5


def test_a_clock_that_was_set_back_gives_nobody_the_past_of_another(path: Path) -> None:
    old, new = Key(Kind.CONTAINER, "a/old/c"), Key(Kind.CONTAINER, "a/new/c")
    with Store(path, {**MOST, Kind.CONTAINER: 1}) as store:
        _minutes(store, START, 10, old)
        _minutes(store, START + 1200, 5, new)
        _minutes(store, START + 300, 2, new)  # the minutes of the old one
    assert total(path, START + 1500, START, Kind.CONTAINER)["a/new/c"].used == 5


def test_the_last_activity_is_never_in_the_future(path: Path) -> None:
    with Store(path) as store:
        entry = Entry(Sample(seen=60_000), START + FAR)  # the clock of the node
        store.add(START * 1000, START * 1000 + 60_000, {CARD: entry})
    [found] = reader(path, START).series(Kind.CARD)
    assert found.active_s == START + 60


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all", b"SQLite format 3\0" + b"x" * 99]
)
def test_a_file_that_is_no_history_is_kept_beside_a_new_one(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with Store(path) as store:
        store.add(START * 1000, START * 1000 + 60_000, {CARD: Entry(Sample(seen=60_000))})
    assert total(path, START + 60, START)["GPU-a"].seen == 60_000
    aside = path.with_name("history.sqlite.damaged-1")
    assert aside.exists() == bool(content)
    assert not content or aside.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_database_of_another_program_is_not_written_to(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE precious (a)")
    other.commit()
    other.close()
    Store(path).close()
    kept = sqlite3.connect(path.with_name("history.sqlite.damaged-1"))
    assert kept.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]
    kept.close()


@pytest.mark.parametrize("at", [5000, 9000, 13000])
def test_a_file_with_bytes_overwritten_does_not_end_the_collector(path: Path, at: int) -> None:
    def write(store: Store) -> None:
        for minute in range(30):
            begin = (START + 60 * minute) * 1000
            store.add(begin, begin + 60_000, {CARD: Entry(Sample(seen=60_000, used=minute))})

    with Store(path) as store:
        write(store)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(os.urandom(600))
    with Store(path) as store:
        write(store)
    assert total(path, START + 1800, START)["GPU-a"].seen >= 1800_000


def _as_version_1(path: Path) -> None:
    """The file as a program of version 1 has written it: blocks without the last two sums."""
    import zlib

    import numpy as np

    from gpupool.history.blocks import block_figures

    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT rowid, data FROM blocks").fetchall()
    for row, data in rows:
        figures = np.delete(block_figures(data), (PEAK - 2, PEAK - 1), axis=1)
        columns = np.ascontiguousarray(figures.T, dtype="<i8")
        by_weight = columns.view(np.uint8).reshape(-1, 8).T
        old = zlib.compress(np.ascontiguousarray(by_weight).tobytes())
        connection.execute("UPDATE blocks SET data = ? WHERE rowid = ?", (old, row))
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


def test_a_file_of_version_1_is_read_and_goes_on(path: Path) -> None:
    old = Sample(seen=60_000, given=12_000, told=9_000, used=30_000, idle=2_000, peak=7)
    with Store(path) as store:
        store.add(START * 1000, START * 1000 + 60_000, {CARD: Entry(old)})
    _as_version_1(path)
    known = old._replace(known=9_000, within=7_000)  # it used more than its part
    assert total(path, START + 60, START) == {"GPU-a": known}
    with Store(path) as store:
        # The hour and the ten minutes go on in the same block.
        store.add(START * 1000 + 60_000, START * 1000 + 120_000, {CARD: Entry(known)})
    for since_s in (START, START - 40 * DAY):
        assert total(path, START + 120, since_s) == {"GPU-a": together([known, known])}
    assert not list(path.parent.glob("*damaged*"))


def test_a_file_of_a_newer_program_is_kept_under_its_name(path: Path) -> None:
    with Store(path) as store:
        _minutes(store, START, 2)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(NoHistory, match="its version is 99; this program reads up to version"):
        Reader(path)
    with Store(path) as store:
        _minutes(store, START + 300, 1)
    kept = sqlite3.connect(path.with_name("history.sqlite.newer-1"))
    assert kept.execute("PRAGMA user_version").fetchone() == (99,)
    assert kept.execute("SELECT count(*) FROM blocks").fetchone()[0] > 0
    kept.close()


def test_who_reads_a_missing_or_damaged_file_is_told_so(path: Path) -> None:
    with pytest.raises(NoHistory, match="no history was written yet"):
        Reader(path)
    path.write_bytes(b"something else, and long enough to be looked at")
    with pytest.raises(NoHistory, match="cannot be read"):
        Reader(path)


def test_a_disk_that_is_full_keeps_what_was_written(path: Path) -> None:
    store = Store(path)
    store.add(START * 1000, START * 1000 + 60_000, {CARD: Entry(Sample(seen=60_000))})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")  # as good as full: nothing can be written
    store._connection.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(sqlite3.OperationalError):
        store.add(START * 1000, START * 1000 + 60_000, {CARD: Entry(Sample(seen=60_000))})
    other.execute("ROLLBACK")
    other.close()
    store.add(START * 1000 + 60_000, START * 1000 + 120_000, {CARD: Entry(Sample(seen=60_000))})
    store.close()
    assert total(path, START + 120, START)["GPU-a"].seen == 120_000


_WRITER = """
import sys
from itertools import pairwise
from pathlib import Path
from gpupool.history.samples import Sample
from gpupool.history.series import Key, Kind
from gpupool.history.store import Entry, Store

store = Store(Path(sys.argv[1]))
for minute in range(100_000):
    begin = ({start} + 60 * minute) * 1000
    keys = [Key(Kind.CARD, f"GPU-{{n}}") for n in range(300)]
    store.add(begin, begin + 60_000, {{key: Entry(Sample(seen=60_000, used=1)) for key in keys}})
    print(minute, flush=True)
"""


def test_what_was_written_survives_kill_9(path: Path) -> None:
    written = -1
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER.format(start=START + 60 * (written + 1)), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            base = written + 1
            for line in process.stdout:
                written = base + int(line)
                if int(line) >= 10:
                    process.send_signal(signal.SIGKILL)
        now = START + 60 * (written + 2)
        found = total(path, now, START)
        assert len(found) == 300
        seen = {sample.seen // 60_000 for sample in found.values()}
        assert len(seen) == 1  # all cards of a minute, or none
        assert seen.pop() - (written + 1) in (0, 1)  # perhaps one more than we were told of
        written = max(written, max(sample.seen for sample in found.values()) // 60_000 - 1)
    assert not list(path.parent.glob("*.damaged-*"))


def test_sums_of_long_times_come_from_coarse_levels() -> None:
    assert level_for_sum(0, 2 * 3600, 2 * 3600) == 0
    assert level_for_sum(0, DAY, DAY) == 1
    assert level_for_sum(0, 7 * DAY, 7 * DAY) == 2
    assert level_for_sum(0, 3600, 30 * DAY) == 2  # only this level reaches back so far
    assert level_for_chart(0, 3600, 3600, 400) == 0
    assert level_for_chart(0, DAY, DAY, 400) == 1
    assert level_for_chart(0, 90 * DAY, 90 * DAY, 400) == 2


def test_a_peak_is_the_greatest_of_all_parts() -> None:
    assert together([Sample(peak=3), Sample(peak=9), Sample(peak=4)])[PEAK] == 9
