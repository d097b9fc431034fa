"""The scheduler's metrics, under the names that kube-scheduler uses.

Label children are looked up once, here: `labels()` costs about as much as the observation itself.
"""

from collections import Counter as Counts
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from gpupool.contract.names import SCHEDULER_LEASE
from gpupool.engine.room import ClusterRoom
from gpupool.scheduler.queue import State
from gpupool.scheduler.room_metrics import RoomCollector

# Decisions take less than a millisecond, so the buckets start at a tenth of one. The upper end is
# that of kube-scheduler.
_SECONDS = tuple(0.0001 * 2**i for i in range(18))
_POD_SECONDS = tuple(0.01 * 2**i for i in range(20))
_VICTIMS = tuple(float(2**i) for i in range(7))
_ATTEMPTS = (1.0, 2.0, 4.0, 8.0, 16.0)
_MANY_ATTEMPTS = 15  # as in kube-scheduler
_QUEUES = (State.ACTIVE, State.BACKING_OFF, State.PARKED)


class Result(StrEnum):
    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=False)
        self._attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Seconds from taking a pod from the queue to its result, the Binding included.",
            ["result", "profile"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Scheduling attempts by result.",
            ["result", "profile"],
            registry=registry,
        )
        self._of_attempt: dict[tuple[Result, str], tuple[Counter, Histogram]] = {}
        self.decision_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Seconds that the decision alone takes.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._pod_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Seconds from when a pod was first seen until it was bound.",
            ["attempts"],
            buckets=_POD_SECONDS,
            registry=registry,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts until a pod was bound.",
            buckets=_ATTEMPTS,
            registry=registry,
        )
        self._count_preemptions(registry)
        self._count_reservations(registry)
        self._pending = Gauge(
            "scheduler_pending_pods", "Pending pods by queue.", ["queue"], registry=registry
        )
        self._cached = Gauge(
            "scheduler_cache_size", "Objects that are kept in memory.", ["type"], registry=registry
        )
        self._incoming = Counter(
            "scheduler_queue_incoming_pods_total",
            "Pods that came into a queue, by queue and by what brought them there.",
            ["queue", "event"],
            registry=registry,
        )
        self._oldest = Gauge(
            "gpupool_scheduler_oldest_pending_seconds",
            "How long the pod has waited that has waited longest; 0: none waits.",
            registry=registry,
        )
        self._counted: Counts[tuple[str, State]] = Counts()  # of `_incoming`, so far
        self._leads = _leads(registry)

    def _count_preemptions(self, registry: CollectorRegistry) -> None:
        self.preemptions = Counter(
            "scheduler_preemption_attempts_total",
            "Preemptions that were started.",
            registry=registry,
        )
        self.victims = Histogram(
            "scheduler_preemption_victims",
            "Victims of each preemption.",
            buckets=_VICTIMS,
            registry=registry,
        )
        self.other_writers = Counter(
            "gpupool_scheduler_other_writers_total",
            "Pods that another scheduler bound to a node without room for them.",
            registry=registry,
        )

    def _count_reservations(self, registry: CollectorRegistry) -> None:
        self._kept = Gauge(
            "gpupool_scheduler_reservations",
            "Pods and groups that have waited for long, for which freed room is kept.",
            registry=registry,
        )
        self._kept_so_far = Counter(
            "gpupool_scheduler_reservations_made_total",
            "Pods and groups for which freed room was kept so far.",
            registry=registry,
        )
        self._kept_counted = 0

    def tried(self, result: Result, seconds: float, profile: str) -> None:
        """`profile`: the pod's spec.schedulerName, which is one of those that we serve."""
        known = self._of_attempt.get((result, profile))
        if known is None:
            labels = (result, profile)
            known = self._attempts.labels(*labels), self._attempt_seconds.labels(*labels)
            self._of_attempt[result, profile] = known
        attempts, attempt_seconds = known
        attempts.inc()
        attempt_seconds.observe(seconds)

    def bound(self, seconds: float, attempts: int) -> None:
        """`seconds`: since the pod was first seen."""
        shown = str(attempts) if attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
        self._pod_seconds.labels(shown).observe(seconds)
        self._pod_attempts.observe(attempts)

    def text(self, now: "Now") -> str:
        for state in _QUEUES:
            self._pending.labels(state).set(now.pending.get(state, 0))
        for kind, count in now.cached.items():
            self._cached.labels(kind).set(count)
        self._oldest.set(now.oldest_s)
        for (event, state), count in now.incoming.items():
            more = count - self._counted[event, state]
            self._incoming.labels(state, event).inc(more)
        self._counted = Counts(now.incoming)
        self._kept.set(now.kept[0])
        self._kept_so_far.inc(now.kept[1] - self._kept_counted)
        self._kept_counted = now.kept[1]
        self._leads.labels(SCHEDULER_LEASE).set(now.leads)
        return _text(self.registry) + _text(RoomCollector(now.room, now.policy))


class Now(NamedTuple):
    """What is looked at when somebody asks, in place of being counted all the time."""

    pending: Mapping[State, int]
    cached: Mapping[str, int]  # how many nodes, pods and assumed pods there are
    incoming: Mapping[tuple[str, State], int]
    leads: bool
    oldest_s: float
    room: ClusterRoom
    policy: str
    kept: tuple[int, int] = (0, 0)  # for how many pods and groups room is kept, and was so far


def standby_text() -> str:
    """The metrics of a replica that does not lead."""
    registry = CollectorRegistry(auto_describe=False)
    _leads(registry).labels(SCHEDULER_LEASE).set(0)
    return _text(registry)


def _leads(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        "leader_election_master_status",
        "1 if this scheduler is the leader, else 0.",
        ["name"],
        registry=registry,
    )


def _text(metrics: Collector) -> str:
    # Imported here: the scheduler of a local cluster serves no HTTP, and aiohttp loads slowly.
    from gpupool.health import metrics_text

    return metrics_text(metrics)
