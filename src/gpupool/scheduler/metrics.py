"""What the scheduler counts, in Prometheus' text form under kube-scheduler's names."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from gpupool.scheduler.queue import State

# From a tenth of a millisecond: decisions are quick here. The upper end is kube-scheduler's.
_SECONDS = tuple(0.0001 * 2**i for i in range(18))
_VICTIMS = tuple(float(2**i) for i in range(7))


class Result(StrEnum):
    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Suffix of the name, labels, value."""
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield "_bucket", f'le="{bound}"', total
        yield "_sum", "", self._sum
        yield "_count", "", total


class Metrics:
    def __init__(self) -> None:
        self.attempts: Counter[Result] = Counter()
        self.attempt_seconds = {result: Histogram(_SECONDS) for result in Result}
        self.decision_seconds = Histogram(_SECONDS)
        self.pod_seconds = Histogram(tuple(0.01 * 2**i for i in range(20)))
        self.preemptions = 0
        self.victims = Histogram(_VICTIMS)
        self.other_writers = 0

    def tried(self, result: Result, seconds: float) -> None:
        self.attempts[result] += 1
        self.attempt_seconds[result].observe(seconds)

    def text(self, pending: Mapping[State, int], cached: Mapping[str, int], leads: bool) -> str:
        """`cached`: how many nodes, pods and assumed pods there are."""
        parts = (*self._histograms(), *self._counts(pending, cached, leads))
        return "".join(f"{line}\n" for part in parts for line in part)

    def _histograms(self) -> Iterator[Iterator[str]]:
        by_result = {f'result="{result}"': self.attempt_seconds[result] for result in Result}
        yield _histograms(
            "scheduler_scheduling_attempt_duration_seconds",
            "From taking a pod up to its result, the Binding included.",
            by_result,
        )
        for name, words, histogram in (
            (
                "scheduler_scheduling_algorithm_duration_seconds",
                "The decision alone.",
                self.decision_seconds,
            ),
            (
                "scheduler_pod_scheduling_sli_duration_seconds",
                "From when a pod was first seen until it was bound.",
                self.pod_seconds,
            ),
            ("scheduler_preemption_victims", "How many each time.", self.victims),
        ):
            yield _histograms(name, words, {"": histogram})

    def _counts(
        self, pending: Mapping[State, int], cached: Mapping[str, int], leads: bool
    ) -> Iterator[Iterator[str]]:
        states = (State.ACTIVE, State.BACKING_OFF, State.PARKED)
        queues = {f'queue="{state}"': pending.get(state, 0) for state in states}
        results = {f'result="{result}"': self.attempts[result] for result in Result}
        sizes = {f'type="{kind}"': count for kind, count in cached.items()}
        for name, kind, words, samples in (
            ("scheduler_pending_pods", "gauge", "Pods that wait.", queues),
            ("scheduler_schedule_attempts_total", "counter", "By result.", results),
            (
                "scheduler_preemption_attempts_total",
                "counter",
                "How often pods had to make room.",
                {"": self.preemptions},
            ),
            ("scheduler_cache_size", "gauge", "What is kept in memory.", sizes),
            (
                "leader_election_master_status",
                "gauge",
                "Whether this one leads.",
                {"": int(leads)},
            ),
            (
                "gpupool_scheduler_other_writers_total",
                "counter",
                "Pods that another scheduler put where there was no room.",
                {"": self.other_writers},
            ),
        ):
            yield _plain(name, kind, words, samples.items())


def _plain(name: str, kind: str, words: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"


def _histograms(name: str, words: str, by_labels: Mapping[str, Histogram]) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} histogram"
    for labels, histogram in by_labels.items():
        for suffix, more, value in histogram.samples():
            listed = ",".join(part for part in (labels, more) if part)
            yield f"{name}{suffix}{{{listed}}} {value}" if listed else f"{name}{suffix} {value}"
