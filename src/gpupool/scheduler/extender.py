"""Extender: the same decisions for kube-scheduler, which calls one verb after the other.

filter returns the best of the nodes that fit, prioritize the scores of the policy, bind chooses the
cards and writes the Binding with them. All verbs use one ledger, and nothing awaits between a
decision and `assume`, so no card is given out twice.

Pods that fit on none of the nodes that were offered are remembered (`refused_pods.py`). When a node
has room for one of them, the pod is led there, and the node is touched (annotation), because
kube-scheduler tries such pods again when a node changes.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpupool.contract import extender_messages as messages
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.extender_messages import (
    BadMessage,
    BindingArgs,
    ExtenderArgs,
    PreemptionArgs,
    Victims,
)
from gpupool.contract.pods import pod_request
from gpupool.core.pods import PodRequest
from gpupool.engine.candidates import Candidates, candidates
from gpupool.engine.decide import Placement, Unschedulable, decide_on
from gpupool.engine.preempt import preempt_on
from gpupool.engine.trial import trial
from gpupool.scheduler.beside_claims import decide_planned
from gpupool.scheduler.bind import LATEST_S
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.ledger import Assignment, Knowledge
from gpupool.scheduler.refused_pods import RefusedPods
from gpupool.scheduler.reservations import Reservations
from gpupool.scheduler.unasked_pods import UnaskedPods
from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound, NotSent, is_certain
from kubeclient.mirror import controller_uid
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

_MOST_OFFERED = 10_000
_TOO_OFTEN = "none of the nodes that were offered has the right cards; others are offered later"
_NOT_SURE = "another may decide about GPUs by now; ask again"


class _Offered(NamedTuple):
    request: PodRequest
    metadata: Obj  # the fields that a Binding needs
    generation: int  # as in ParsedRequests; 0 also if the request leaves out parts of the spec
    controller: str


class Extender:
    def __init__(
        self,
        kube: Kube,
        state: ClusterState,
        clock: Callable[[], float],
        may_act: Callable[[], bool],
        most_nodes: int = 0,
        sampled: Callable[[], None] = lambda: None,
    ) -> None:
        """`most_nodes`: as many as filter returns; 0: all that fit. `sampled`: see RefusedPods."""
        self._kube = kube
        self._most_nodes = most_nodes
        self._clock = clock
        self._may_act = may_act
        self.state = state
        self.reservations = Reservations(state.cluster)
        self.refused = RefusedPods(state, self.reservations, clock, sampled)
        self.unasked = UnaskedPods(clock)
        self._offered: dict[str, _Offered] = {}  # by uid, since their filter call
        self._asked: set[str] = set()  # uids of pods whose Binding may have no answer

    # -- filter and prioritize -------------------------------------------------------------

    def filter(self, args: ExtenderArgs) -> Obj:
        offered = self._offer(args.pod)
        pod = offered.request
        self.refused.offered(pod.uid, args.names, _nominated(args.pod))
        self.unasked.asked(args.pod)
        is_judged_later = _is_judged_later(args.pod)
        planned = "" if is_judged_later else self._planned(offered, args.names)
        if planned:
            self.refused.fits(pod.uid)
            return messages.filter_result(args, (planned,), {}, {})
        if self._most_nodes == 1 and not is_judged_later:
            best = self._best(pod, args.names)
            if best:
                self.refused.fits(pod.uid)
                return messages.filter_result(args, (best,), {}, {})
        found = self._candidates(pod, args.names)
        if found:
            self.refused.fits(pod.uid)
        elif self.refused.is_too_often(pod.uid, args.names):
            # After an error kube-scheduler pauses, which it does not do after a refusal.
            return messages.filter_error(_TOO_OFTEN)
        else:
            self.refused.add(pod, args.names, knows_all=not is_judged_later)
        refused = found.refused(self.state.cluster, pod)
        # kube-scheduler scores each node that it gets back, one by one. Its own filters have run
        # before this call, so only what it judges later can still rule a node out.
        fitting = found.fitting(0 if is_judged_later else self._most_nodes)
        if len(fitting) == 1:  # kube-scheduler takes it without calling prioritize
            self._reserve(pod, found)
        return messages.filter_result(args, fitting, refused.curable, refused.incurable)

    def prioritize(self, args: ExtenderArgs) -> list[Obj]:
        """Scores from 10 (best) to 0 (worst). The best node is reserved for the pod."""
        pod = self._offer(args.pod).request
        found = self._candidates(pod, args.names)
        if found:
            self._reserve(pod, found)
        return messages.priorities(args.names, found.scores(messages.MAX_SCORE))

    def _planned(self, pod: _Offered, names: Sequence[str]) -> str:
        """The node where a plan of moves wants the pod, reserved. Empty: none of these."""
        if pod.controller not in self.state.planned_moves:
            return ""
        uid = pod.request.uid
        if self.state.ledger.assignment(uid) is not None:
            return ""
        self._end_reservations(uid)
        found = decide_planned(self.state, pod.request, pod.controller)
        if found is None or found.node not in names:
            return ""
        self.reservations.make(pod.request, *found, self._clock())
        return found.node

    def _best(self, pod: PodRequest, names: Sequence[str]) -> str:
        """The best node, reserved. Empty: there is none, or the long way has to find it.

        Why others do not fit is not asked: kube-scheduler reads reasons if it gets no node.
        """
        if self.state.ledger.assignment(pod.uid) is not None:
            return ""
        self._end_reservations(pod.uid)
        best = decide_on(self.state.cluster, pod, self.state.policy, names)
        if not isinstance(best, Placement):
            return ""
        self.reservations.make(pod, best.node, best.allocation, self._clock())
        return best.node

    def _reserve(self, pod: PodRequest, found: Candidates) -> None:
        if self.state.ledger.assignment(pod.uid) is not None:
            return  # a reservation would hold the pod's share twice
        best = decide_on(self.state.cluster, pod, self.state.policy, (found.best(),))
        if isinstance(best, Placement):
            self.reservations.make(pod, best.node, best.allocation, self._clock())

    def _candidates(self, pod: PodRequest, names: Sequence[str]) -> Candidates:
        cluster, policy = self.state.cluster, self.state.policy
        kept = self.state.ledger.assignment(pod.uid)
        if kept is not None:  # the result of its Binding is unknown: only the same node
            where = cluster.indexes(names)
            (there,) = cluster.indexes((kept.node,))
            return Candidates(names, where, where[(where == there) & (where >= 0)])
        self._end_reservations(pod.uid)
        found = candidates(cluster, pod, policy, names)
        if found:
            return found
        with self.reservations.ignored():
            return candidates(cluster, pod, policy, names)

    def _end_reservations(self, uid: str) -> None:
        self.reservations.expire(self._clock())
        # kube-scheduler may ask about a pod again: its own reservation must not be in its way.
        self.reservations.end(uid)

    def _offer(self, pod: Obj) -> _Offered:
        """Remember the pod until it is bound: bind gets only name and uid. Raises BadMessage."""
        metadata = pod["metadata"]
        uid, version = metadata.get("uid") or "", metadata.get("resourceVersion") or ""
        known = self._offered.get(uid)
        # kube-scheduler sends the same pod to filter and prioritize, and parsing is expensive.
        if known is not None and known.metadata["resourceVersion"] == version:
            return known
        named = {key: metadata.get(key) or "" for key in ("name", "namespace")}
        offered = _offered(pod, {**named, "uid": uid, "resourceVersion": version})
        # Once for each pod, as with those that wait for the scheduler beside the extender.
        if known is None and uid not in self.refused:
            self.state.packing.count(self.state.cluster, offered.request)
        while len(self._offered) >= _MOST_OFFERED:
            del self._offered[next(iter(self._offered))]
        self._offered[uid] = offered
        return offered

    # -- bind ------------------------------------------------------------------------------

    async def bind(self, args: BindingArgs) -> str:
        """The error; empty: the pod is bound."""
        # Removed at once: after a Conflict the version that was offered is stale.
        offered = self._offered.pop(args.uid, None)
        if offered is not None:
            try:
                return await self._bind(offered, args.node)
            except Conflict:
                pass  # it is bound already, or was written to since the filter call
        try:
            pod = await self._kube.get(PODS, args.name, args.namespace)
            if pod["metadata"]["uid"] != args.uid:
                return f"pod {args.namespace}/{args.name} is another one by now"
            if pod["spec"].get("nodeName") == args.node:  # a repeated request
                return ""
            return await self._bind(_offered(pod, pod["metadata"]), args.node)
        except KubeError as error:
            return f"pod {args.namespace}/{args.name} cannot be read or bound: {error}"

    async def _bind(self, pod: _Offered, node: str) -> str:
        """Raises Conflict."""
        assignment = self._assigned(pod.request, node, pod.controller)
        if assignment is None:
            shown = f"{pod.request.namespace}/{pod.request.name}"
            return f"pod {shown} no longer fits on node {node}"
        return await self._write(pod, assignment)

    def _assigned(self, pod: PodRequest, node: str, controller: str) -> Assignment | None:
        ledger, moves = self.state.ledger, self.state.planned_moves
        kept = ledger.assignment(pod.uid)
        if kept is not None:
            return kept if kept.node == node else None
        self.reservations.end(pod.uid)
        found = self._on(node, pod, controller)
        if not isinstance(found, Placement):
            with self.reservations.ignored():
                found = decide_on(ledger.cluster, pod, self.state.policy, (node,))
        if not isinstance(found, Placement):
            return None
        ledger.assume(pod, found.node, found.allocation)
        if controller in moves:
            moves.placed(controller, pod.uid, *found)
        return ledger.assignment(pod.uid)

    def _on(self, node: str, pod: PodRequest, controller: str) -> Placement | Unschedulable:
        if controller in self.state.planned_moves:
            planned = decide_planned(self.state, pod, controller)
            if planned is not None and planned.node == node:
                return planned
        return decide_on(self.state.cluster, pod, self.state.policy, (node,))

    async def _write(self, pod: _Offered, assignment: Assignment) -> str:
        """Fencing: `pod` was read before `may_act` is asked here; see `bind.py`."""
        uid, ledger = pod.request.uid, self.state.ledger
        annotations = allocation_annotations(assignment.allocation, now_ns=time.time_ns())
        try:
            if not self._may_act():
                raise NotSent(_NOT_SURE)
            ledger.asked(uid, self._clock())
            self._asked.add(uid)
            self.state.parsed.keep(pod.generation, pod.request)
            await self._kube.bind({"metadata": pod.metadata}, assignment.node, annotations)
        # The assignment stays held: the conflict may be with our own Binding (`is_certain`).
        except Conflict:
            raise
        except KubeError as error:
            if not is_certain(error):
                ledger.asked(uid, self._clock())
                return f"nobody knows what became of the Binding; ask again for the same: {error}"
            if assignment.knowledge is Knowledge.ASSUMED:
                self.state.refused(uid)
            else:
                ledger.asked(uid, assignment.asked_s)  # as in `Binder`
            return str(error)
        ledger.answered(uid)
        self.refused.fits(uid)
        return ""

    async def settle_lost(self) -> None:
        """Release what Bindings without an answer hold when none of them can still arrive.

        kube-scheduler may never ask about such a pod again. See `Binder.look`.
        """
        ledger, overdue_s = self.state.ledger, self._clock() - LATEST_S
        for uid in list(self._asked):
            kept = ledger.assignment(uid)
            if kept is None or kept.knowledge is not Knowledge.UNANSWERED:
                self._asked.discard(uid)
            # A pod of the scheduler beside the extender: its Binding may be sent again just now.
            elif kept.asked_s < overdue_s and uid not in self.state.pending:
                await self._look(uid, kept)

    async def _look(self, uid: str, kept: Assignment) -> None:
        held = self.state.cluster.held(uid)
        assert held is not None
        try:
            pod = await self._kube.get(PODS, held.pod.name, held.pod.namespace)
            if pod["metadata"]["uid"] == uid and pod["spec"].get("nodeName"):
                return  # the watch will show it
        except NotFound:
            pass
        except KubeError as error:
            log.warning("pod not read", extra={"pod": held.pod.name, "error": str(error)})
            return
        # Another one means: kube-scheduler has asked again meanwhile.
        if self.state.ledger.assignment(uid) is kept:
            self.state.refused(uid)

    # -- preempt ---------------------------------------------------------------------------

    def preempt(self, args: PreemptionArgs) -> Obj:
        """For each node: the proposed victims if they free the right cards, else better ones.

        A node where no victims help is left out. All are, if the pod fits without victims on a
        node that was not offered.
        """
        pod = _request(args.pod)
        if self.refused.is_led(pod.uid):
            return messages.preemption_result({})
        found: dict[str, Victims] = {}
        # Reservations end by themselves within seconds: no pod is evicted because of one.
        with self.reservations.ignored():
            for node, victims in args.victims.items():
                better = self._victims(pod, node, victims)
                if better is not None:
                    found[node] = better
        if found:
            self.refused.cleared(pod.uid)
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

    # -- pods that are bound or gone --------------------------------------------------------

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        self.unasked.pod_changed(old, new)
        if old is not None and (new is None or old["metadata"]["uid"] != new["metadata"]["uid"]):
            self._forget(old["metadata"]["uid"])
        if new is not None and new["spec"].get("nodeName"):
            self._forget(new["metadata"]["uid"])

    def _forget(self, uid: str) -> None:
        self.refused.forget(uid)
        self._offered.pop(uid, None)
        self.reservations.end(uid)


def _nominated(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")


def _is_judged_later(pod: Obj) -> bool:
    """Whether kube-scheduler may refuse a node, or prefer one, for reasons that we do not know.

    It reserves volumes and claimed devices after it has chosen a node, and prefers nodes by what
    storage they have left.
    """
    spec = pod.get("spec") or {}
    volumes = spec.get("volumes") or ()
    kinds = ("persistentVolumeClaim", "ephemeral")
    return bool(spec.get("resourceClaims")) or any(
        volume.get(kind) for volume in volumes for kind in kinds
    )


def _offered(pod: Obj, metadata: Obj) -> _Offered:
    """Raises BadMessage."""
    request = _request(pod)
    generation = pod["metadata"].get("generation")
    is_whole = not request.unsupported and isinstance(generation, int)
    return _Offered(request, metadata, generation if is_whole else 0, controller_uid(pod))


def _request(pod: Obj) -> PodRequest:
    """Without "unsupported" fields of the spec: kube-scheduler handles those. Raises BadMessage."""
    try:
        request = pod_request(pod)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadMessage(f"the pod cannot be read: {error!r}") from error
    if not request.unsupported:
        return request
    ours = tuple(words for words in request.unsupported if not words.startswith("spec."))
    return replace(request, unsupported=ours)
