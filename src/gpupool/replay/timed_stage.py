"""TimedStage: a cluster on which jobs wait, run and leave, with or without reservations.

A job is a pod, or a gang of pods that start together or not at all.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from time import process_time
from typing import cast

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.gang import Placements, decide_gang
from gpupool.engine.kinds import kind_of
from gpupool.engine.last_places import LEFT_S, FreedNodes, is_last_place
from gpupool.engine.node_state import Held
from gpupool.engine.packing import Packing
from gpupool.engine.patience import LEAST_PATIENCE_S, Patience
from gpupool.engine.reservation import Waiting
from gpupool.engine.reservations import Reservations
from gpupool.engine.run_times import RunTimes
from gpupool.engine.shapes import shape_of
from gpupool.replay.trace import Trace


@dataclass(frozen=True, slots=True)
class TimedJob:
    members: tuple[int, ...]  # indexes in the trace
    requests: tuple[PodRequest, ...]
    shape: Hashable
    arrives_s: int
    runs_s: int | None
    gpu_milli: int
    ran_s: int = 0  # before it arrived


def jobs_of(trace: Trace) -> list[TimedJob]:
    """By time of arrival. A gang arrives with the last of its pods, and ends with the last."""
    gangs: dict[Hashable, list[int]] = {}
    for at, pod in enumerate(trace.pods):
        gangs.setdefault(pod.gang or at, []).append(at)
    jobs = [_job(trace, members) for members in gangs.values()]
    return sorted(jobs, key=lambda job: (job.arrives_s, job.members))


def _job(trace: Trace, members: Sequence[int]) -> TimedJob:
    pods = [trace.pods[at] for at in members]
    runs = [pod.runs_s for pod in pods]
    requests = tuple(
        replace(pod.request, uid=str(at)) for at, pod in zip(members, pods, strict=True)
    )
    return TimedJob(
        tuple(members),
        requests,
        tuple(shape_of(pod.request) for pod in pods),
        max(pod.arrives_s or 0 for pod in pods),
        None if None in runs else max(each or 0 for each in runs),
        sum(pod.gpu_milli for pod in pods),
        max(pod.ran_s for pod in pods),
    )


class TimedStage:
    def __init__(self, trace: Trace, policy: str, *, reserves: bool) -> None:
        self.cluster = ClusterModel()
        for node in trace.nodes:
            self.cluster.set_node(node)
        self.packing = Packing(policy)
        self.reserves = reserves
        self.reservations = Reservations(self.cluster)
        self.patience = Patience()
        self.run_times = RunTimes()
        self.allocated_milli = 0
        self.seconds = 0.0  # CPU time, because other programs may use the machine too
        self._began: dict[str, tuple[Hashable, int]] = {}  # by uid: kind and time
        self._freed: set[str] = set()  # nodes on which room became free
        self._freed_nodes = FreedNodes()
        self._left: dict[str, int] = {}  # places that are left to larger pods: until when
        self._nodes = trace.nodes
        self._possible: dict[Hashable, bool] = {}

    def arrive(self, job: TimedJob) -> None:
        began = process_time()
        for request in job.requests:
            self.packing.count(self.cluster, request)
        self.seconds += process_time() - began

    def attempt(self, job: TimedJob, now: int) -> Placements | None:
        """None: it fits nowhere now."""
        began = process_time()
        found = self._decide(job, now)
        if found is not None:
            self._place(job, found, now)
        self.seconds += process_time() - began
        return found

    def _decide(self, job: TimedJob, now: int) -> Placements | None:
        if job.members in self.reservations:
            with self.reservations.own_room(job.members):
                return self._placements(job)
        found = self._placements(job) if self._may_fit(job) else None
        if found is not None and self.reserves and self._leaves_place(job, found, now):
            return None
        if found is None and len(self.reservations):
            end_s = now + max(self.run_times.at_most_s(kind_of(pod)) for pod in job.requests)
            usable = self.reservations.open_until(end_s, 0)
            if usable:
                with self.reservations.ignored(lambda kept: kept in usable):
                    found = self._placements(job)
        return found

    def _leaves_place(self, job: TimedJob, found: Placements, now: int) -> bool:
        """Of pods that start together none is small."""
        cluster, policy, first = self.cluster, self.packing.policy, job.requests[0]
        place = found[first.uid]
        for_all_s = self._freed_nodes.for_all_s(place.node)
        # No room is ever kept for pods without GPUs.
        until_s = for_all_s if first.gpus else min(for_all_s, job.arrives_s + LEFT_S)
        if len(found) > 1 or now >= until_s or not is_last_place(cluster, first, policy, place):
            return False
        self._left[place.node] = min(int(until_s), self._left.get(place.node, int(until_s)))
        return True

    def places_lapse_s(self) -> int | None:
        """When the next place is for all that somebody has left to larger pods."""
        return min(self._left.values(), default=None)

    def lapse_places(self, now: int) -> None:
        for_all = {node for node, for_all_s in self._left.items() if for_all_s <= now}
        self._freed |= for_all
        self._left = {node: at for node, at in self._left.items() if node not in for_all}

    def _may_fit(self, job: TimedJob) -> bool:
        """A quick look, because most jobs that wait fit nowhere after most departures."""
        columns = self.cluster.columns
        for pod in job.requests:
            for ask in pod.gpus:
                most = columns.whole_free.max() if ask.whole else columns.largest_free.max()
                if most < (ask.whole or ask.units):
                    return False
        return True

    def may_fit_now(self, job: TimedJob) -> bool:
        """Whether a job that fitted nowhere may fit since room became free."""
        own = self.reservations.get(job.members)
        open_for = [own] if own is not None else self.reservations.all()
        kept = {node for each in open_for for node in each.nodes()}
        return any(
            node in kept or self._may_fit_on(pod, node)
            for node in self._freed
            for pod in job.requests
        )

    def _may_fit_on(self, pod: PodRequest, node: str) -> bool:
        columns, state = self.cluster.columns, self.cluster.state(node)
        if state is None:
            return False
        at = state.index
        return (
            pod.resources.get("cpu", 0) <= columns.cpu_free[at]
            and pod.resources.get("memory", 0) <= columns.host_free[1][at]
            and all(
                ask.whole <= columns.whole_free[at]
                if ask.whole
                else ask.units <= columns.largest_free[at]
                for ask in pod.gpus
            )
        )

    def settle(self) -> None:
        """Room that became free is kept for those for whom room is kept elsewhere."""
        began = process_time()
        for node in sorted(self._freed) if len(self.reservations) else ():
            given_up = self.reservations.settle(node, self.packing.policy)
            self._freed |= {seat.placement.node for seat in given_up}
        self.seconds += process_time() - began

    def forget_freed(self) -> None:
        self._freed.clear()

    def fits_when_empty(self, job: TimedJob) -> bool:
        if job.shape not in self._possible:
            empty = ClusterModel()
            for node in self._nodes:
                empty.set_node(node)
            self._possible[job.shape] = self._placements(job, empty) is not None
        return self._possible[job.shape]

    def _placements(self, job: TimedJob, cluster: ClusterModel | None = None) -> Placements | None:
        cluster, policy = cluster or self.cluster, self.packing.policy
        if len(job.requests) > 1:
            found = decide_gang(cluster, job.requests, policy, len(job.requests))
            return found if isinstance(found, dict) else None
        decision = decide(cluster, job.requests[0], policy)
        return {job.requests[0].uid: decision} if isinstance(decision, Placement) else None

    def _place(self, job: TimedJob, found: Placements, now: int) -> None:
        kept = self.reservations.get(job.members)
        if kept is not None:
            self._freed |= kept.nodes()
            self.reservations.drop(job.members)
        for request in job.requests:
            self.cluster.hold(request, *found[request.uid])
            self.reservations.backfilled(request.uid, self.packing.policy)
            self._began[request.uid] = (kind_of(request), now - job.ran_s)
        self.patience.placed(job.requests, now - job.arrives_s)
        self.allocated_milli += job.gpu_milli

    def leave(self, job: TimedJob, now: int) -> None:
        for request in job.requests:
            held = self.cluster.held(request.uid)
            if held is not None:
                self._freed.add(held.node)
                self._freed_nodes.ended(held.node, now)
            self.cluster.release(request.uid)
            self.reservations.gone(request.uid)
            kind, began = self._began.pop(request.uid)
            self.run_times.ended(kind, now - began)
        self.allocated_milli -= job.gpu_milli

    def lapse(self, now: int) -> list[tuple[int, ...]]:
        """Members of the jobs for which no room is kept any more: it was idle for too long."""
        over = self.reservations.lapsed(now)
        for kept in over:
            self._freed |= kept.nodes()
            self.reservations.drop(kept.waiting.key)
        return [cast(tuple[int, ...], kept.waiting.key) for kept in over]

    def reserve(self, waiting: Iterable[TimedJob], now: int) -> list[tuple[int, ...]]:
        """Members of the jobs for which room is kept from now on. `waiting`: first come first."""
        if not self.reserves:
            return []
        began = process_time()
        made = self._reserve(waiting, now)
        self.seconds += process_time() - began
        return made

    def is_ready(self, members: tuple[int, ...]) -> bool:
        """Whether the room that is kept for the job is free: it had left it to larger pods."""
        kept = self.reservations.get(members)
        if kept is None or any(seat.leaving for seat in kept.seats):
            return False
        self._freed |= kept.nodes()
        return True

    def _reserve(self, waiting: Iterable[TimedJob], now: int) -> list[tuple[int, ...]]:
        policy = self.packing.policy

        def ends(held: Held, of: int) -> float:
            kind, began_s = self._began[held.pod.uid]
            return now + self.run_times.left_s(kind, now - began_s, of)

        made: list[tuple[int, ...]] = []
        if self.reservations.may_consider(now):
            old = takewhile(lambda job: job.arrives_s < now - LEAST_PATIENCE_S, waiting)
            due = [
                Waiting(job.members, job.requests, job.arrives_s)
                for job in old
                if job.arrives_s < now - self.patience.of(job.requests)
            ]
            if due:
                found = self.reservations.consider(due, policy, ends, now)
                made = [cast(tuple[int, ...], each.waiting.key) for each in found]
        before = {node for each in self.reservations.all() for node in each.nodes()}
        if self.reservations.move_late(policy, ends, now):
            self._freed |= before
        return made
