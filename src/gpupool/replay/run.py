"""replay: arrivals in, placements out, through the engine that schedules pods."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from time import process_time

from gpupool.core.gpu import Allocation
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.last_places import is_last_place
from gpupool.engine.packing import Packing
from gpupool.replay.arrivals import Arrivals
from gpupool.replay.trace import MILLI, Trace, TracePod

# Called with the number of decisions since its last call.
Progress = Callable[[int], None]
_STEP = 200  # decisions between two calls of Progress
_SAMPLES = 200  # measurements of the free part of partly used cards


@dataclass(frozen=True, slots=True)
class Decision:
    pod: int  # its index in the trace
    node: str  # empty: it fits nowhere
    cards: tuple[int, ...]


@dataclass(slots=True)
class ReplayRecord:
    """A decision for each arrival, and how long all decisions took."""

    decisions: list[Decision] = field(default_factory=list)
    allocated_milli: list[int] = field(default_factory=list)  # after each arrival
    fragments: list[tuple[int, int]] = field(
        default_factory=list
    )  # (arrival, thousandths), sampled
    seconds: float = 0.0


class Stage:
    """An empty cluster with the trace's nodes, and a policy that learns from the pods."""

    def __init__(self, trace: Trace, policy: str) -> None:
        self.cluster = ClusterModel()
        for node in trace.nodes:
            self.cluster.set_node(node)
        self.packing = Packing(policy)
        self.seconds = 0.0  # CPU time, because other programs may use the machine too
        self.allocated_milli = 0
        self._sizes: dict[str, int] = {}

    def arrive(self, pod: TracePod, uid: str) -> Placement | None:
        """Try a pod for the first time; None: it fits nowhere now."""
        request = replace(pod.request, uid=uid)
        began = process_time()
        # To learn the mix counts as scheduling time: the scheduler does it for every pod, too.
        self.packing.count(self.cluster, request)
        self.seconds += process_time() - began
        return self.attempt(pod, uid)

    def attempt(self, pod: TracePod, uid: str) -> Placement | None:
        request = replace(pod.request, uid=uid)
        began = process_time()
        found = self._decide(request)
        if found is not None:
            self.cluster.hold(request, found.node, found.allocation)
        self.seconds += process_time() - began
        if found is None:
            return None
        self._sizes[uid] = pod.gpu_milli
        self.allocated_milli += pod.gpu_milli
        return found

    def _decide(self, pod: PodRequest) -> Placement | None:
        policy = self.packing.policy
        found = decide(self.cluster, pod, policy)
        if not isinstance(found, Placement) or is_last_place(self.cluster, pod, policy, found):
            return None
        return found

    def fragments_milli(self) -> int:
        """The free part of partly used cards."""
        columns = self.cluster.columns
        free, total = columns.card_free, columns.card_total
        return int((free * MILLI // total)[(free > 0) & (free < total)].sum())

    def leave(self, uid: str) -> None:
        self.cluster.release(uid)
        self.allocated_milli -= self._sizes.pop(uid)


def replay(trace: Trace, arrivals: Arrivals, policy: str, progress: Progress) -> ReplayRecord:
    stage, record = Stage(trace, policy), ReplayRecord()
    leaving: list[tuple[float, str]] = []
    sampled = max(1, len(arrivals.order) // _SAMPLES)
    for at, arrival in enumerate(arrivals.order):
        while leaving and leaving[0][0] <= at:
            stage.leave(heappop(leaving)[1])
        uid = str(at)
        placement = stage.arrive(trace.pods[arrival.pod], uid)
        record.decisions.append(decision_of(arrival.pod, placement))
        record.allocated_milli.append(stage.allocated_milli)
        if placement and arrival.leaves is not None:
            heappush(leaving, (arrival.leaves, uid))
        if at % _STEP == _STEP - 1:
            progress(_STEP)
        if at % sampled == 0:
            record.fragments.append((at, stage.fragments_milli()))
    progress(len(arrivals.order) % _STEP)
    record.seconds = stage.seconds
    return record


def decision_of(pod: int, placement: Placement | None) -> Decision:
    if placement is None:
        return Decision(pod, "", ())
    return Decision(pod, placement.node, tuple(sorted(set(_indexes(placement.allocation)))))


def _indexes(allocation: Allocation) -> Iterator[int]:
    for container in allocation.containers:
        yield from (share.index for share in container.shares)
