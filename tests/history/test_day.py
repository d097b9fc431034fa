"""A synthetic day at speed: what the report says is what the generator knows."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpupool.history.advice import advices
from gpupool.history.facts import pod_facts
from gpupool.history.reader import Reader
from gpupool.history.samples import Sample
from gpupool.history.series import Kind
from gpupool.history.usage import idle_pods, usage_of
from tests.history.day import AWAY, DAY_S, MINUTES, START, UNITS, Pod, pod_object, pods

pytestmark = pytest.mark.slow  # a minute of CPU: every second of the day is looked at

ROOT = Path(__file__).parent.parent.parent
KILLED_AT, BACK_AT = 700, 712  # nobody looks for twelve minutes
NOW = START + DAY_S


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    path = tmp_path_factory.mktemp("day") / "history.sqlite"
    command = [sys.executable, "-m", "tests.history.day", str(path)]
    with subprocess.Popen(
        [*command, "0", str(MINUTES)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == KILLED_AT:
                process.kill()  # in the middle of the day, perhaps of a write
                break
    subprocess.run([*command, str(BACK_AT), str(MINUTES)], cwd=ROOT, check=True, stdout=-3)
    return Reader(path, lambda: NOW)


def _seen(begin_s: int, end_s: int) -> int:
    """Seconds of a time in which the collector ran. It may have written one minute more than it had
    told of when it was killed."""
    gap = range(KILLED_AT * 60, BACK_AT * 60)
    missed = max(0, min(end_s, gap.stop) - max(begin_s, gap.start))
    return max(0, min(end_s, DAY_S) - begin_s) - missed


def _told(pod: Pod, at_s: int) -> bool:
    minute = -(-at_s // 60) + (at_s % 60 == 0)  # the minute that ends after it
    away = any(pod.node == node and first <= minute <= last for node, first, last in AWAY)
    return not away and not KILLED_AT < minute <= BACK_AT and at_s < DAY_S


def _by(reader: Reader, kind: Kind) -> dict[str, Sample]:
    return {series.name: sample for series, sample in reader.sums(kind, START).of}


KEYS: dict[Kind, Callable[[Pod], str]] = {
    Kind.NAMESPACE: lambda pod: pod.namespace,
    Kind.USER: lambda pod: pod.user or "unknown",
    Kind.WORKLOAD: lambda pod: f"{pod.namespace}/StatefulSet/{pod.workload}",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KEYS)
def test_hours_asked_for_and_given_are_true_within_one_percent(day: Reader, kind: Kind) -> None:
    given: dict[str, float] = {}
    asked: dict[str, float] = {}
    for pod in pods():
        key, part = KEYS[kind](pod), pod.units / UNITS
        given[key] = given.get(key, 0) + part * _seen(pod.begin_s, pod.end_s) / 3600
        asked[key] = asked.get(key, 0) + part * _seen(pod.asked_s, pod.end_s) / 3600
    found = {name: usage_of(name, sample) for name, sample in _by(day, kind).items()}
    assert found.keys() == given.keys()
    for name, usage in found.items():
        assert usage.given == pytest.approx(given[name], rel=0.01), name
        assert usage.asked == pytest.approx(asked[name], rel=0.01), name


@pytest.mark.timeout(600)
def test_hours_used_are_true_within_one_percent_of_the_time_that_was_told(day: Reader) -> None:
    ran: dict[str, float] = {}
    used: dict[str, float] = {}  # of what was given: at most its part of each minute
    for pod in pods():
        part = pod.units / UNITS
        for minute in range(pod.begin_s // 60, -(-min(pod.end_s, DAY_S) // 60)):
            begin = max(pod.begin_s, minute * 60)
            seconds = range(begin, min(pod.end_s, DAY_S, minute * 60 + 60))
            worked = sum(_told(pod, at) for at in seconds if pod.works(at)) * pod.percent / 100
            ran[pod.namespace] = ran.get(pod.namespace, 0) + worked / 3600
            most = min(worked, part * len(seconds))
            used[pod.namespace] = used.get(pod.namespace, 0) + most / 3600
    for name, sample in _by(day, Kind.NAMESPACE).items():
        usage = usage_of(name, sample)
        assert sample.used / 3_600_000 == pytest.approx(ran[name], rel=0.01), name
        assert usage.used == pytest.approx(used[name], rel=0.01), name
        assert usage.idle + usage.unknown == pytest.approx(usage.given - used[name], rel=0.01)
        assert 0.9 * sample.given < sample.told < sample.given  # what was not told is unknown


@pytest.mark.timeout(600)
def test_the_sums_of_all_kinds_agree_to_the_last_millisecond(day: Reader) -> None:
    def total(kind: Kind, field: str) -> int:
        return sum(getattr(sample, field) for sample in _by(day, kind).values())

    for field in ("given", "idle", "memory_given", "known", "within"):
        kinds = (Kind.CONTAINER, Kind.WORKLOAD, Kind.NAMESPACE, Kind.USER, Kind.CARD, Kind.NODE)
        # Each part of a card is rounded down for the slots of its series: a millisecond at most.
        sums = [total(kind, field) for kind in (*kinds, Kind.POOL, Kind.CLUSTER)]
        assert len(set(sums)) == 1, (field, sums)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("hours", [1, 2, 3])
def test_idle_pods_are_found_exactly(day: Reader, hours: int) -> None:
    since = DAY_S - hours * 3600
    expected = set()
    for pod in pods():
        last = pod.last_work(DAY_S - 1)
        if pod.begin_s <= since and pod.end_s > DAY_S and (last is None or last < since):
            expected.add(pod.name)
    running = {
        f"{pod.namespace}/{pod.name}/main": float(START + pod.begin_s)
        for pod in pods()
        if pod.begin_s <= DAY_S < pod.end_s
    }
    sums = day.sums(Kind.CONTAINER, START + since)
    found = idle_pods(sums.of, running, START + since, START + DAY_S)
    assert {each.pod for each in found} == expected
    assert expected  # the day has some
    for each in found:
        [pod] = [pod for pod in pods() if pod.name == each.pod]
        # What it did while its agent was away, nobody knows.
        seen = (at for at in range(DAY_S - 1, pod.begin_s, -1) if pod.works(at) and _told(pod, at))
        last = next(seen, None)
        if last is None:
            assert each.active_s is None
        else:
            assert each.active_s is not None
            assert abs(each.active_s - (START + last)) <= 60


@pytest.mark.timeout(600)
def test_advice_leaves_room_above_the_peak(day: Reader) -> None:
    peaks: dict[str, int] = {}
    for pod in pods():
        key = f"{pod.namespace}/StatefulSet/{pod.workload}"
        peaks[key] = max(peaks.get(key, 0), pod.mib)
    there = [found for pod in pods() if (found := pod_object(pod, DAY_S - 1))]
    held = [each for pod in there for each in pod_facts(pod)]
    sums = day.sums(Kind.CONTAINER, START).of
    for advice in advices(sums, _by(day, Kind.WORKLOAD), held):
        assert advice.units < advice.units_now
        peak = peaks[f"{advice.namespace}/{advice.workload}"]
        assert advice.units * advice.mib_now / advice.units_now >= peak
