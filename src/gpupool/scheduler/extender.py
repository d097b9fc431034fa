"""Extender: the same decisions for kube-scheduler, which asks for them verb by verb.

filter answers with every node that fits, prioritize with what the policy makes of them, bind
decides the cards and writes the Binding with them. All verbs see one ledger, and nothing awaits
between a decision and its hold, so no card is given twice. Who was refused is remembered: when
room comes up, its node is touched, because kube-scheduler looks again when a node changes.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gpupool.contract import extender_messages as messages
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.extender_messages import (
    BadMessage,
    BindingArgs,
    ExtenderArgs,
    PreemptionArgs,
    Victims,
)
from gpupool.contract.objects import Obj
from gpupool.contract.pods import pod_request
from gpupool.core.request import PodRequest
from gpupool.engine.decide import Candidate, Placement, decide, decide_on, feasible
from gpupool.engine.explain import refusals
from gpupool.engine.preempt import preempt_on
from gpupool.engine.trial import trial
from gpupool.kube.client import Kube
from gpupool.kube.errors import KubeError, NotSent, is_certain
from gpupool.kube.resources import PODS
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.ledger import Knowledge, Place
from gpupool.scheduler.reservations import Reservations

log = logging.getLogger(__name__)

_MOST_WAITING = 10_000
_NOT_SURE = "another may decide about GPUs by now; ask again"


@dataclass(frozen=True, slots=True)
class Reasons:
    failed: dict[str, str]
    unresolvable: dict[str, str]


class Extender:
    def __init__(
        self,
        kube: Kube,
        state: ClusterState,
        clock: Callable[[], float],
        may_act: Callable[[], bool],
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._may_act = may_act
        self.state = state
        self.reservations = Reservations(state.cluster)
        self.waiting: dict[str, PodRequest] = {}  # refused by every node

    # -- filter and prioritize -------------------------------------------------------------

    def filter(self, args: ExtenderArgs) -> Obj:
        pod = _request(args.pod)
        candidates = self._candidates(pod, args.names)
        if candidates:
            self.waiting.pop(pod.uid, None)
        elif len(self.waiting) < _MOST_WAITING:
            self.waiting[pod.uid] = pod
        fitting = {candidate.node for candidate in candidates}
        refused = [name for name in args.names if name not in fitting]
        reasons = self._reasons(pod, refused)
        listed = [name for name in args.names if name in fitting]
        return messages.filter_result(args, listed, reasons.failed, reasons.unresolvable)

    def prioritize(self, args: ExtenderArgs) -> list[Obj]:
        """The best gets 10, the worst 0; the best is reserved."""
        pod = _request(args.pod)
        candidates = self._candidates(pod, args.names)
        scores = dict.fromkeys(args.names, 0)
        for rank, candidate in enumerate(candidates):
            scores[candidate.node] = (
                messages.MAX_SCORE * (len(candidates) - rank) // len(candidates)
            )
        if candidates and self.state.ledger.place(pod.uid) is None:
            found = decide_on(self.state.cluster, pod, self.state.policy, (candidates[0].node,))
            if isinstance(found, Placement):
                self.reservations.make(pod, found.node, found.allocation, self._clock())
        return messages.priorities(scores)

    def _candidates(self, pod: PodRequest, names: Iterable[str]) -> list[Candidate]:
        kept = self.state.ledger.place(pod.uid)
        if kept is not None:  # its Binding got no answer: there, or nowhere yet
            return [Candidate(kept.node, 0)] if kept.node in set(names) else []
        self.reservations.expire(self._clock())
        self.reservations.end(pod.uid)
        found = feasible(self.state.cluster, pod, self.state.policy, names)
        if found:
            return found
        with self.reservations.ignored():
            return feasible(self.state.cluster, pod, self.state.policy, names)

    def _reasons(self, pod: PodRequest, names: list[str]) -> Reasons:
        cluster, wanted = self.state.cluster, set(names)
        known: dict[str, list[str]] = {}
        incurable: set[str] = set()
        for refused in refusals(cluster, pod) if wanted else ():
            for index in refused.nodes:
                name = cluster.at(int(index)).node.name
                if name in wanted:
                    known.setdefault(name, []).append(refused.reason)
                    if not refused.curable:
                        incurable.add(name)
        words = {name: ", ".join(known.get(name, ["node is not known yet"])) for name in names}
        return Reasons(
            {name: text for name, text in words.items() if name not in incurable},
            {name: text for name, text in words.items() if name in incurable},
        )

    # -- bind ------------------------------------------------------------------------------

    async def bind(self, args: BindingArgs) -> str:
        """What went wrong; the empty string: it is bound."""
        try:
            pod = await self._kube.get(PODS, args.name, args.namespace)
        except KubeError as error:
            return f"pod {args.namespace}/{args.name} cannot be read: {error}"
        if pod["metadata"]["uid"] != args.uid:
            return f"pod {args.namespace}/{args.name} is another one by now"
        place = self._place(_request(pod), args.node)
        if place is None:
            return f"pod {args.namespace}/{args.name} no longer fits on node {args.node}"
        return await self._write(pod, place)

    def _place(self, pod: PodRequest, node: str) -> Place | None:
        ledger = self.state.ledger
        kept = ledger.place(pod.uid)
        if kept is not None:
            return kept if kept.node == node else None
        self.reservations.end(pod.uid)
        found = decide_on(ledger.cluster, pod, self.state.policy, (node,))
        if not isinstance(found, Placement):
            with self.reservations.ignored():
                found = decide_on(ledger.cluster, pod, self.state.policy, (node,))
        if not isinstance(found, Placement):
            return None
        ledger.assume(pod, found.node, found.allocation)
        return ledger.place(pod.uid)

    async def _write(self, pod: Obj, place: Place) -> str:
        uid, ledger = pod["metadata"]["uid"], self.state.ledger
        annotations = allocation_annotations(place.allocation, now_ns=time.time_ns())
        try:
            if not self._may_act():
                raise NotSent(_NOT_SURE)
            ledger.asked(uid, self._clock())
            await self._kube.bind(pod, place.node, annotations)
        except KubeError as error:
            if not is_certain(error):
                ledger.asked(uid, self._clock())
                return f"nobody knows what became of the Binding; ask again for the same: {error}"
            if place.knowledge is Knowledge.ASSUMED:
                self.state.refused(uid)
            return str(error)
        ledger.answered(uid)
        self.waiting.pop(uid, None)
        return ""

    # -- preempt ---------------------------------------------------------------------------

    def preempt(self, args: PreemptionArgs) -> Obj:
        """kube-scheduler's victims where they free the right cards, else ours, else not there."""
        pod = _request(args.pod)
        found: dict[str, Victims] = {}
        with self.reservations.ignored():
            for node, victims in args.victims.items():
                better = self._victims(pod, node, victims)
                if better is not None:
                    found[node] = better
        return messages.preemption_result(found)

    def _victims(self, pod: PodRequest, node: str, proposed: Victims) -> Victims | None:
        cluster = self.state.cluster
        with trial(cluster) as trying:
            for uid in proposed.uids:
                trying.release(uid)
            if proposed.uids and isinstance(
                decide_on(cluster, pod, self.state.policy, (node,)), Placement
            ):
                return proposed
        budgets = tuple(self.state.budgets.values())
        own = preempt_on(cluster, pod, self.state.policy, node, budgets)
        return Victims(own.victims, own.broken_budgets) if own and own.victims else None

    # -- who waits -------------------------------------------------------------------------

    def freed(self) -> list[str]:
        """Nodes on which somebody who was refused would fit now. They are forgotten by this."""
        nodes: dict[str, None] = {}
        for uid, pod in list(self.waiting.items()):
            found = decide(self.state.cluster, pod, self.state.policy)
            if isinstance(found, Placement):
                nodes[found.node] = None
                del self.waiting[uid]
        return list(nodes)

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        """One that has a node, or is gone, needs none of this any more."""
        if old is not None and (new is None or old["metadata"]["uid"] != new["metadata"]["uid"]):
            self._forget(old["metadata"]["uid"])
        if new is not None and new["spec"].get("nodeName"):
            self._forget(new["metadata"]["uid"])

    def _forget(self, uid: str) -> None:
        self.waiting.pop(uid, None)
        self.reservations.end(uid)


def _request(pod: Obj) -> PodRequest:
    """What kube-scheduler itself takes care of is not refused here. Raises BadMessage."""
    try:
        request = pod_request(pod)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadMessage(f"the pod cannot be read: {error!r}") from error
    ours = tuple(words for words in request.unsupported if not words.startswith("spec."))
    return replace(request, unsupported=ours)
