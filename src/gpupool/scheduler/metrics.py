"""The scheduler's metrics, under the names that kube-scheduler uses.

Label children are looked up once, here: `labels()` costs about as much as the observation itself.
"""

from collections.abc import Mapping
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gpupool.scheduler.queue import State

# Decisions take less than a millisecond, so the buckets start at a tenth of one. The upper end is
# that of kube-scheduler.
_SECONDS = tuple(0.0001 * 2**i for i in range(18))
_POD_SECONDS = tuple(0.01 * 2**i for i in range(20))
_VICTIMS = tuple(float(2**i) for i in range(7))
_QUEUES = (State.ACTIVE, State.BACKING_OFF, State.PARKED)


class Result(StrEnum):
    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=False)
        attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Seconds from taking a pod from the queue to its result, the Binding included.",
            ["result"],
            buckets=_SECONDS,
            registry=registry,
        )
        attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Scheduling attempts by result.",
            ["result"],
            registry=registry,
        )
        self._attempts = {
            result: (attempts.labels(result), attempt_seconds.labels(result)) for result in Result
        }
        self.decision_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Seconds that the decision alone takes.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.pod_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Seconds from when a pod was first seen until it was bound.",
            buckets=_POD_SECONDS,
            registry=registry,
        )
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
        self._pending = Gauge(
            "scheduler_pending_pods", "Pending pods by queue.", ["queue"], registry=registry
        )
        self._cached = Gauge(
            "scheduler_cache_size", "Objects that are kept in memory.", ["type"], registry=registry
        )
        self._leads = Gauge(
            "leader_election_master_status",
            "1 if this scheduler is the leader, else 0.",
            registry=registry,
        )

    def tried(self, result: Result, seconds: float) -> None:
        attempts, attempt_seconds = self._attempts[result]
        attempts.inc()
        attempt_seconds.observe(seconds)

    def text(self, pending: Mapping[State, int], cached: Mapping[str, int], leads: bool) -> str:
        """`cached`: how many nodes, pods and assumed pods there are."""
        # Imported here: the scheduler of a local cluster serves no HTTP, and aiohttp loads slowly.
        from gpupool.health import metrics_text

        for state in _QUEUES:
            self._pending.labels(state).set(pending.get(state, 0))
        for kind, count in cached.items():
            self._cached.labels(kind).set(count)
        self._leads.set(leads)
        return metrics_text(self.registry)
