"""ClusterState: turns nodes and pods of the API into holds of the ledger and entries of the queue.

The handlers (`..._changed`) are called by mirrors in the order of resourceVersions. They never
await, so that a decision sees either all of a change or nothing of it. They are idempotent: after
a relist a mirror may report the same object twice.
"""

from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import replace

from gpupool.contract.budgets import budget_of
from gpupool.contract.held_allocation import held_allocation
from gpupool.contract.nodes import node_of
from gpupool.contract.pods import pod_request
from gpupool.contract.quotas import quota_of
from gpupool.core.gpu import Allocation
from gpupool.core.pods import DisruptionBudget, PodRequest
from gpupool.core.quota import UnitsQuota
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.discrepancies import excesses_on
from gpupool.engine.packing import Packing
from gpupool.engine.policies.policy import Policy
from gpupool.scheduler.findings import NOT_UNDERSTOOD, OVERCOMMITTED, Findings
from gpupool.scheduler.groups import Group, Groups, Standing, group_of
from gpupool.scheduler.kept_room import Job, KeptRoom, jobs_of
from gpupool.scheduler.ledger import Ledger
from gpupool.scheduler.parsed_requests import ParsedRequests
from gpupool.scheduler.pending import (
    Pending,
    is_done,
    is_never_bound,
    pending_of,
    wants_node,
    with_storage,
)
from gpupool.scheduler.planned_moves import PlannedMoves
from gpupool.scheduler.preemption_claims import PreemptionClaims, Spared
from gpupool.scheduler.queue import Queue
from gpupool.scheduler.resizing import Resizing
from gpupool.scheduler.storage_state import StorageState
from gpupool.scheduler.unread_allocations import UnreadAllocations
from kubeclient.mirror import key_of
from kubeclient.objects import Obj


class ClusterState:
    def __init__(
        self,
        schedulers: Container[str],
        policy: str,
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """`changed`: called whenever there may be something to schedule."""
        self.packing = Packing(policy)
        self.ledger = Ledger(ClusterModel())
        self.queue = Queue()
        self.groups = Groups()
        self.preemption_claims = PreemptionClaims(self.cluster)
        self.spared = Spared()
        self.kept_room = KeptRoom(self.cluster, clock, victims=self.preemption_claims.leaving)
        self.planned_moves = PlannedMoves()
        self.resizing = Resizing(changed)
        self.findings = Findings(changed)
        self.is_first_read = False  # set while all objects are read for the first time
        self.unread = UnreadAllocations(self.cluster, self.findings.unread)
        self._storage = StorageState()
        self.storage = self._storage.storage
        self.parsed = ParsedRequests()
        self.budgets: dict[tuple[str, str], DisruptionBudget] = {}
        self.quotas: dict[tuple[str, str], UnitsQuota] = {}
        self.pending: dict[str, Pending] = {}
        self.on_forget: Callable[[str], None] = lambda _uid: None  # a pod is not pending any more
        self._keys_that_keep_off: frozenset[str] = frozenset()
        self._schedulers = schedulers
        self._changed = changed
        self._clock = clock

    @property
    def cluster(self) -> ClusterModel:
        return self.ledger.cluster

    @property
    def policy(self) -> Policy:
        """The current policy. It is replaced as the mix of pods changes (`Packing`)."""
        return self.packing.policy

    # -- changes in the API ----------------------------------------------------------------

    def node_changed(self, old: Obj | None, new: Obj | None) -> None:
        before = self.cluster.version
        self.resizing.node_seen(old, new)
        self.planned_moves.node_changed(old, new)
        if new is not None:
            node = node_of(new)
            known = self.cluster.state(node.name)
            if node.problems and (known is None or known.node.problems != node.problems):
                self.findings.add(new, NOT_UNDERSTOOD, "; ".join(node.problems))
            limits = self._storage.limits.get(node.name)
            self.cluster.set_node(replace(node, volume_limits=limits) if limits else node)
        elif old is not None:
            self.cluster.remove_node(old["metadata"]["name"])
        # Kubelets update their nodes all the time. What decisions do not depend on wakes nobody.
        if self.cluster.version != before:
            name = (new or old or {})["metadata"]["name"]
            self.unread.node_seen(name)
            self.preemption_claims.node_changed(name)
            self.wake()

    def namespace_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            labels, name = new["metadata"].get("labels") or {}, new["metadata"]["name"]
            if self.cluster.index.namespaces.get(name) != labels:
                self.cluster.set_namespace(name, labels)
                # All pods, not only those with terms: terms of held pods may keep them off.
                self.wake()
        elif old is not None:
            self.cluster.set_namespace(old["metadata"]["name"], None)

    def budget_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.budgets[key_of(new)] = budget_of(new)
        elif old is not None:
            self.budgets.pop(key_of(old), None)

    def quota_changed(self, old: Obj | None, new: Obj | None) -> None:
        self.quotas.pop(key_of(new or old or {}), None)
        found = quota_of(new) if new is not None else None
        if found is not None:
            self.quotas[found.namespace, found.name] = found

    def volume_claim_changed(self, old: Obj | None, new: Obj | None) -> None:
        self._storage_changed(self._storage.claim_changed(old, new))

    def volume_changed(self, old: Obj | None, new: Obj | None) -> None:
        self._storage_changed(self._storage.volume_changed(old, new))

    def class_changed(self, old: Obj | None, new: Obj | None) -> None:
        self._storage.class_changed(old, new)
        self._storage_changed([pod.uid for pod in self.pending.values() if pod.volume_inputs])

    def volume_limits_changed(self, old: Obj | None, new: Obj | None) -> None:
        name, before = self._storage.limits_changed(old, new), self.cluster.version
        known = self.cluster.state(name)
        if known is not None:
            limits = self._storage.limits.get(name, {})
            self.cluster.set_node(replace(known.node, volume_limits=limits))
        if self.cluster.version != before:
            self.wake()

    def _storage_changed(self, users: Collection[str]) -> None:
        """`users`: uids of pods whose volumes may be others now."""
        before = self.cluster.version
        for uid in users:
            if uid in self.pending:
                self._put(with_storage(self.pending[uid], self.storage))
            self.ledger.attached(uid, self._storage.attached(uid))
        if self.cluster.version != before:
            self.wake()

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        # One change with two uids: the pod was deleted and created again while the watch was down.
        if old is not None and (new is None or old["metadata"]["uid"] != new["metadata"]["uid"]):
            self._gone(old["metadata"]["uid"])
            self._in_group(old["metadata"]["uid"], None, None)
        if new is None:
            return
        uid = new["metadata"]["uid"]
        if is_done(new) or is_never_bound(new):
            self._gone(uid)
        elif new["spec"].get("nodeName"):
            self._bound(new)
        elif wants_node(new, self._schedulers):
            self._waits(new)
        else:  # it has another schedulerName now
            self._forget(uid)
        group = group_of(new["metadata"])
        self._in_group(uid, group if isinstance(group, Group) else None, self._standing(new))

    def _standing(self, pod: Obj) -> Standing | None:
        """What the pod is to its group; None: nothing, because it ends soon or will not start."""
        if "deletionTimestamp" in pod["metadata"]:
            return None
        if is_done(pod):
            return Standing.SUCCEEDED if pod["status"]["phase"] == "Succeeded" else None
        uid = pod["metadata"]["uid"]
        if self.ledger.assignment(uid) is not None:
            return Standing.PLACED
        return Standing.WAITING if uid in self.pending else None

    def _in_group(self, uid: str, group: Group | None, standing: Standing | None) -> None:
        self.groups.put(uid, group, standing)
        for key in self.groups.take_changed():
            self.queue.retry(self.groups.waiting(key))
            self._changed()

    def _bound(self, pod: Obj) -> None:
        # First: `_forget` below drops the pending pod, whose parsed request is used again here.
        request, node = self._request_of_bound(pod), pod["spec"]["nodeName"]
        is_new = request.uid not in self.pending and self.ledger.assignment(request.uid) is None
        self._forget(request.uid)
        before, known = self.cluster.version, self.cluster.held(request.uid)
        holds = self.resizing.seen(pod, held_allocation(pod, request.gpus))
        self.kept_room.began(request)
        # What is there at first is not new: an earlier leader has reported it.
        if self.ledger.seen(request, node, holds) and not self.is_first_read:
            self._check(pod, node)
        self.unread.pod_seen(pod, holds)
        # Pending ones were counted in `_waits`. After the hold: the card must not look free.
        if is_new:
            self.packing.count(self.cluster, request)
        if self.cluster.version == before:
            return
        # The pod moved, shrank or grew: room may be free now. A pod that was just placed frees
        # nothing; it can only help pods with constraints on other pods.
        if known is not None and (
            (known.node, known.allocation) != (node, holds)
            or known.pod.resources != request.resources
        ):
            self.wake()
        else:
            self.queue.wake_dependent()
            # Another scheduler placed it: perhaps into room that is being cleared.
            if known is None:
                self.queue.retry(self.preemption_claims.on(node))
            self._changed()

    def _request_of_bound(self, pod: Obj) -> PodRequest:
        """Of a bound pod, without its node name, which filters take for a constraint."""
        metadata, attached = pod["metadata"], self._storage.seen(pod)
        if waiting := self.pending.get(metadata["uid"]):
            self.parsed.keep(waiting.generation, waiting.request)
        known = self.parsed.take(metadata)
        if known is not None:
            return replace(known, attached=attached) if attached else known
        return replace(pod_request(pod), node_name="", attached=attached)

    def _check(self, pod: Obj, node: str) -> None:
        """Report a pod that another scheduler bound to a node that had no room for it."""
        state = self.cluster.state(node)
        over = excesses_on(state) if state is not None else []
        if over:
            listed = ", ".join(f"{each.held} of {each.there} {each.what}" for each in over)
            message = f"Another scheduler put this pod on {node}, which now offers {listed}"
            self.findings.add(pod, OVERCOMMITTED, message)

    def _waits(self, pod: Obj) -> None:
        known = self.pending.get(pod["metadata"]["uid"])
        self._storage.seen(pod)
        # The time at which the pod was first seen stays: the metric of pending time starts there.
        pending = pending_of(pod, known.seen_s if known else self._clock())
        self._put(with_storage(pending, self.storage))
        if known is None:
            self.packing.count(self.cluster, pending.request)

    def _put(self, pod: Pending) -> None:
        known = self.pending.get(pod.uid)
        # Always, because a Binding needs the newest resourceVersion.
        self.pending[pod.uid] = pod
        if (
            known is not None
            and known.request == pod.request
            and (known.group, known.nominated) == (pod.group, pod.nominated)
        ):
            return
        if known is not None:  # the room was chosen for what it asked for before
            self.drop_kept_room(pod.uid)
        # Only if the request changed. Our own condition changes the pod too: if that activated the
        # pod, every report would cause a decision, and every decision a report.
        self.queue.add(
            pod.uid,
            pod.shape(self.cluster),
            priority=pod.request.priority,
            created=pod.created,
            depends_on_pods=pod.depends_on_pods,
        )
        self._changed()

    def _gone(self, uid: str) -> None:
        self._forget(uid)
        self.resizing.gone(uid)
        self.spared.gone(uid)
        self._storage.gone(uid)
        self.parsed.gone(uid)
        self.unread.gone(uid)
        held = self.cluster.held(uid)
        released = self.ledger.gone(uid)
        # In the same step: between the two the room of the victim would be free for all.
        self.preemption_claims.victim_gone(uid, self._clock())
        self.kept_room.gone(uid)
        if held is not None:
            self.kept_room.freed(held.node, self.policy)
        if released:
            self.wake()

    def _forget(self, uid: str) -> None:
        """The pod is not pending any more."""
        self.queue.forget(uid)
        if self.pending.pop(uid, None) is not None:
            self.on_forget(uid)
        self.drop_preemption_claim(uid)
        self.drop_kept_room(uid)

    # -- the queue -------------------------------------------------------------------------

    def next_pod(self, now_s: float) -> str | None:
        """The uid of the next pod to try."""
        # Before each try: that a pod fits nowhere is taken to be true of all pods of its shape.
        if self.cluster.index.keys_that_keep_off != self._keys_that_keep_off:
            self._reshape()
        return self.queue.pop(now_s)

    def _reshape(self) -> None:
        """Held pods look at other labels than before: pods may be alike no more, or again."""
        self._keys_that_keep_off = frozenset(self.cluster.index.keys_that_keep_off)
        changed = [
            self.queue.reshape(pod.uid, pod.shape(self.cluster)) for pod in self.pending.values()
        ]
        if any(changed):
            self.queue.wake()

    # -- decisions of the scheduler --------------------------------------------------------

    def assume(self, pod: Pending, node: str, allocation: Allocation) -> None:
        self.ledger.assume(pod.request, node, allocation)
        self.groups.decided(pod.uid, Standing.PLACED)
        self.queue.placed(pod.uid)
        claim = self.preemption_claims.get(pod.uid)
        self.preemption_claims.suspend(pod.uid)
        dropped = self.kept_room.placed(pod, self.policy)
        # A claim ends: it may have kept other room, and nobody could evict it, but this pod.
        if dropped or claim is not None:
            self.wake()
        else:
            self.queue.wake_dependent()

    def hold(self, uid: str, allocation: Allocation) -> None:
        """The share of a bound pod is about to change: hold the new allocation."""
        assignment = self.ledger.assignment(uid)
        if assignment is not None and assignment.allocation != allocation:
            self.ledger.resized(uid, allocation)

    def refused(self, uid: str) -> None:
        if self.ledger.refused(uid):
            self.groups.decided(uid, Standing.WAITING)
            self.preemption_claims.resume(uid)
            self.kept_room.unplaced(uid)
            self.wake()

    def drop_preemption_claim(self, uid: str) -> None:
        if self.preemption_claims.drop(uid):
            self.wake()

    def drop_kept_room(self, uid: str) -> None:
        if self.kept_room.drop(uid):
            self.wake()

    def give_up_kept_room(self) -> None:
        self.kept_room.is_on = False
        self.kept_room.drop_all()
        self.wake()

    def keep_room(self) -> list[str]:
        """Pods for which room is kept from now on."""
        made, freed = self.kept_room.look(self._waiting_jobs, self.policy)
        for uid in made:  # none is like it any more
            self.queue.reshape(uid, self.pending[uid].shape(self.cluster))
        if made or freed:
            self.wake()
        return made

    def _waiting_jobs(self) -> Iterator[Job]:
        """Those that fit nowhere, and for which nobody is being evicted."""
        waiting = [
            pod
            for uid, pod in self.pending.items()
            if self.queue.is_parked(uid) and uid not in self.preemption_claims and not pod.nominated
        ]
        yield from jobs_of(waiting, self.groups)

    def expire_preemption_claims(self) -> None:
        now_s = self._clock()
        for uid, claim in self.preemption_claims.overdue(now_s):
            self.spared.add(claim.remaining, now_s)
            self.drop_preemption_claim(uid)
        if self.spared.expire(now_s):
            self.wake()

    def claims_due_s(self) -> float:
        """When `expire_preemption_claims` has something to do."""
        return min(self.preemption_claims.due_s(), self.spared.due_s())

    def try_again(self, uid: str) -> None:
        """The writes for this pod are done: it is tried again."""
        self.queue.again(uid)
        self._changed()

    def wake(self) -> None:
        self.queue.wake()
        self._changed()
