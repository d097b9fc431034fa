"""Agents that lie, owners of pods who write what they like, full disks, and readers at any time."""

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gpupool.core.gpu import CardShare
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.accounts import CLUSTER, entries
from gpupool.history.facts import Held, Moment, NodeFacts
from gpupool.history.reader import Reader
from gpupool.history.samples import Sample
from gpupool.history.series import MOST, Key, Kind
from gpupool.history.store import Entry, Store
from gpupool.history.usage import usage_of

START = 1_700_006_400
MINUTE = 60_000
CARDS = tuple(f"GPU-{n}" for n in range(64))
NODES = {"n": NodeFacts("pool", CARDS, 64 * 15), "honest": NodeFacts("pool", ("GPU-h",), 15)}
SHARE = CardShare("GPU-h", 0, 3, 3226, 15)
HELD = Held("a", "p", "main", "u", "Job/j", "ann", "honest", (SHARE,), 0, 3, 0, None)
CARD = Key(Kind.CARD, "GPU-a")


def moment(minute: int, cards: dict[str, CardReading], *held: Held) -> Moment:
    at_ms = START * 1000 + minute * MINUTE
    found = {(each.uid, each.container): each for each in held}
    return Moment(at_ms, NODES, found, cards, dict.fromkeys(NODES, at_ms / 1000))


def test_an_agent_that_tells_of_absurd_energy_spoils_no_sum(tmp_path: Path) -> None:
    """The largest numbers that the contract lets through, up and down, on as many cards."""
    largest = 2**63 - 1

    def told(minute: int) -> dict[str, CardReading]:
        energy, power = (largest, 2**31 - 1) if minute % 2 else (0, None)
        lies = {u: CardReading(u, 1, energy_mj=energy, power_mw=power, sm_percent=0) for u in CARDS}
        return lies | {
            "GPU-h": CardReading("GPU-h", 900, sm_percent=50, energy_mj=minute * 6 * 10**6)
        }

    path = tmp_path / "history.sqlite"
    with Store(path) as store:
        for minute in range(180):
            before, after = (moment(at, told(at), HELD) for at in (minute, minute + 1))
            store.add(before.at_ms, after.at_ms, entries(before, after))
    reader = Reader(path, lambda: START + 180 * 60)
    honest = {s.name: x for s, x in reader.sums(Kind.NODE, START).of}["honest"]
    assert honest.energy == 180 * 6000  # joules
    [(_, cluster)] = reader.sums(Kind.CLUSTER, START - 40 * 86400).of
    most = 64 * 180 * 60 * 10_000  # 10 kW for each card, all of the time
    assert honest.energy < cluster.energy <= most + honest.energy
    reader.close()


@pytest.mark.parametrize(("units", "of"), [(2**20, 1), (2**20, 0), (30, 15)])
def test_who_writes_his_own_allocation_has_no_more_than_the_card(units: int, of: int) -> None:
    forged = replace(HELD, shares=(replace(SHARE, units=units, card_units=of),))
    found = entries(moment(0, {}, forged), moment(1, {}, forged))
    assert found[Key(Kind.NAMESPACE, "a")].sample.given == MINUTE


def test_ten_thousand_containers_are_counted_each(tmp_path: Path) -> None:
    crowd = [
        replace(HELD, uid=f"u{n}", pod=f"p{n}", namespace=f"ns{n % 100}") for n in range(10_000)
    ]
    uses = tuple(
        ContainerUse(each.namespace, each.pod, "main", 1, uid=each.uid, sm_percent=1)
        for each in crowd[:4096]  # an agent tells of no more
    )
    cards = {"GPU-h": CardReading("GPU-h", 900, containers=uses)}
    path = tmp_path / "history.sqlite"
    with Store(path, {**MOST, Kind.CONTAINER: 2_000}) as store:
        for minute in (0, 1):
            before, after = (moment(at, cards, *crowd) for at in (minute, minute + 1))
            store.add(before.at_ms, after.at_ms, entries(before, after))
        assert store.refused == 16_000
    reader = Reader(path, lambda: START + 120)
    assert len(reader.sums(Kind.CONTAINER, START).of) == 2_000
    sums = reader.sums(Kind.NAMESPACE, START).of  # of all, with those that have no line
    assert sum(sample.given for _, sample in sums) == 10_000 * 2 * MINUTE * 3 // 15
    usage = usage_of("", reader.sums(Kind.CLUSTER, START).of[0][1])
    assert usage.given == pytest.approx(usage.used + usage.idle + usage.unknown)
    reader.close()


def test_a_disk_without_room_costs_minutes_and_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    keys = [Key(Kind.CARD, f"GPU-{n}") for n in range(3_000)]

    def add(store: Store, minute: int, of: list[Key]) -> None:
        begin = START * 1000 + minute * MINUTE
        store.add(begin, begin + MINUTE, {key: Entry(Sample(seen=MINUTE, used=7)) for key in of})

    with Store(path) as store:
        add(store, 0, [CARD])
        [pages] = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(sqlite3.OperationalError, match="full"):
            add(store, 1, keys)
        add(store, 2, [CARD, *keys])  # somebody made room
    reader = Reader(path, lambda: START + 180)
    found = {series.name: sample.used for series, sample in reader.sums(Kind.CARD, START).of}
    assert found["GPU-a"] == 14
    assert {found[key.name] for key in keys} == {7}
    reader.close()
    assert not list(tmp_path.glob("*damaged*"))


def test_who_reads_during_a_write_sees_whole_minutes(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    keys = [Key(Kind.CARD, f"GPU-{n}") for n in range(600)]
    written = threading.Event()

    def write() -> None:
        added = {key: Entry(Sample(seen=MINUTE, used=1)) for key in keys}
        try:
            with Store(path) as store:
                for minute in range(60):
                    begin = START * 1000 + minute * MINUTE
                    store.add(begin, begin + MINUTE, added)
        finally:
            written.set()

    with Store(path):
        pass
    writer = threading.Thread(target=write)
    writer.start()
    looks = 0
    while not written.is_set() or not looks:
        reader = Reader(path, lambda: START + 3600)
        used = {sample.used for _, sample in reader.sums(Kind.CARD, START).of}
        reader.close()
        assert len(used) <= 1  # all cards of a minute, or none
        looks += 1
    writer.join()
    assert Reader(path, lambda: START + 3600).sums(Kind.CARD, START).of[0][1].used == 60


def test_a_moment_in_which_nothing_is_known_adds_nothing_but_time() -> None:
    before, after = Moment(START * 1000), Moment(START * 1000 + MINUTE, {"n": NODES["honest"]})
    assert entries(before, after)[CLUSTER].sample == Sample(seen=MINUTE, have=MINUTE)
