"""RefusedPods: pods that fit on no node that kube-scheduler offered, and where they are led.

kube-scheduler stops looking for nodes when it has found enough of them, so what it offers is a
sample. A pod of which no node of the sample has the right cards may fit elsewhere. It is led there:
kube-scheduler tries the node in status.nominatedNodeName before all others. A node that changes
makes it try again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.decide import Placement, decide, decide_on, feasible
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.reservations import Reservations

_MOST = 10_000
# kube-scheduler looks for at least so many nodes. If it offers fewer, it has looked at all.
LEAST_SAMPLE = 100
# So long a pod is not led to the same node again: kube-scheduler may refuse the node for reasons
# that we do not know. Its longest pause between two tries is 10 s.
TRIED_S = 30.0
# kube-scheduler tries a pod again when its own words about it change. If they change with each
# sample, it would never pause: so often it may try within this time.
AT_ONCE = 3
AT_ONCE_S = 1.0


class Lead(NamedTuple):
    pod: PodRequest
    node: str
    is_nominated: bool  # whether kube-scheduler has to be told to try this node first
    is_over: bool = False  # it is not led to this node any more, and to no other


@dataclass(frozen=True, slots=True)
class _Refused:
    pod: PodRequest
    may_lead: bool  # to nodes that were not offered
    times: int  # it was refused in one second
    first_s: float


class RefusedPods:
    def __init__(
        self,
        state: ClusterState,
        reservations: Reservations,
        clock: Callable[[], float],
        sampled: Callable[[], None] = lambda: None,
    ) -> None:
        """`sampled` is called when `leads` may answer without any change in the cluster."""
        self._state = state
        self._reservations = reservations
        self._clock = clock
        self._sampled = sampled
        self._refused: dict[str, _Refused] = {}  # by uid
        self._tried: dict[str, dict[str, float]] = {}  # uid -> node -> until when
        self._nominated: dict[str, str] = {}  # uid -> the node to which it was led last

    def __contains__(self, uid: str) -> bool:
        return uid in self._refused

    def __len__(self) -> int:
        return len(self._refused)

    @property
    def has_tried(self) -> bool:
        """Whether time alone may make a lead possible."""
        return any(uid in self._refused for uid in self._tried)

    def offered(self, uid: str, names: Sequence[str], nominated: str) -> None:
        """kube-scheduler asks about these nodes. `nominated`: in the pod that it sends."""
        last = self._nominated.get(uid)
        # It has nothing against the node, or has not heard of it.
        if last is not None and (tuple(names) == (last,) or nominated != last):
            self._tried.get(uid, {}).pop(last, None)

    def is_too_often(self, uid: str, names: Sequence[str]) -> bool:
        """Whether kube-scheduler shall pause before it tries the pod with another sample."""
        return len(names) >= LEAST_SAMPLE and self._lately(uid)[0] >= AT_ONCE

    def _lately(self, uid: str) -> tuple[int, float]:
        """How often the pod was refused in the last second, and when at first."""
        now_s, known = self._clock(), self._refused.get(uid)
        is_lately = known is not None and now_s < known.first_s + AT_ONCE_S
        return (known.times, known.first_s) if known and is_lately else (0, now_s)

    def add(self, pod: PodRequest, names: Sequence[str], *, knows_all: bool) -> None:
        """`names` were offered. `knows_all`: we know all that kube-scheduler judges a node by."""
        if pod.uid not in self._refused and len(self._refused) >= _MOST:
            return
        is_sample = len(names) >= LEAST_SAMPLE
        times, first_s = self._lately(pod.uid)
        self._refused[pod.uid] = _Refused(pod, is_sample and knows_all, times + 1, first_s)
        if is_sample or pod.uid in self._nominated:
            self._sampled()

    def fits(self, uid: str) -> None:
        self._refused.pop(uid, None)

    def cleared(self, uid: str) -> None:
        """kube-scheduler evicts pods for it and nominates it itself: that must not be undone."""
        self._nominated.pop(uid, None)
        if refused := self._refused.get(uid):
            self._refused[uid] = replace(refused, may_lead=False)

    def forget(self, uid: str) -> None:
        for each in (self._refused, self._tried, self._nominated):
            each.pop(uid, None)

    def is_led(self, uid: str) -> bool:
        """Whether the pod fits on a node to which it is to be led: nobody need be evicted."""
        refused = self._refused.get(uid)
        return refused is not None and refused.may_lead and self._room(refused.pod) is not None

    def leads(self) -> list[Lead]:
        """Of all pods for which there is room now. They are forgotten until they are refused again.

        The room is reserved for some seconds, so that the next pod is led elsewhere.
        """
        found = (self._lead(uid, refused) for uid, refused in list(self._refused.items()))
        return [lead for lead in found if lead is not None]

    def _lead(self, uid: str, refused: _Refused) -> Lead | None:
        room = self._room(refused.pod)
        if room is None:
            last = self._nominated.pop(uid, None)
            if last is None:
                return None
            return Lead(refused.pod, last, is_nominated=True, is_over=True)
        del self._refused[uid]
        if self._state.ledger.assignment(uid) is None:
            self._reservations.make(refused.pod, room.node, room.allocation, self._clock())
        if refused.may_lead:
            self._note(uid, room.node)
        return Lead(refused.pod, room.node, refused.may_lead)

    def _note(self, uid: str, node: str) -> None:
        while len(self._nominated) >= _MOST:
            self.forget(next(iter(self._nominated)))
        self._tried.setdefault(uid, {})[node] = self._clock() + TRIED_S
        self._nominated[uid] = node

    def _room(self, pod: PodRequest) -> Placement | None:
        cluster, policy = self._state.cluster, self._state.policy
        kept = self._state.ledger.assignment(pod.uid)
        if kept is not None:  # the result of its Binding is unknown: only the same node
            return Placement(kept.node, kept.allocation)
        self._reservations.end(pod.uid)
        tried = self._tried_now(pod.uid)
        if not tried:
            found = decide(cluster, pod, policy)
        else:
            others = np.setdiff1d(cluster.all_nodes(), cluster.indexes(tried))
            best = feasible(cluster, pod, policy, others)[:1].tolist()
            names = tuple(cluster.at(index).node.name for index in best)
            found = decide_on(cluster, pod, policy, names)
        return found if isinstance(found, Placement) else None

    def _tried_now(self, uid: str) -> list[str]:
        tried, now_s = self._tried.get(uid, {}), self._clock()
        for node in [node for node, until_s in tried.items() if until_s <= now_s]:
            del tried[node]
        if not tried:
            self._tried.pop(uid, None)
        return list(tried)
