"""The controller of ReplicaSets, and of their predecessor, the ReplicationController: keeps the
wanted number of pods of one template."""

import datetime
from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec

from kubeclient.errors import KubeError
from kubeclient.mirror import Key, controller_uid, key_of
from kubeclient.objects import Obj
from kubeclient.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from localkube.controllers import ownership
from localkube.controllers.expectations import Expectations
from localkube.controllers.ownership import Owned
from localkube.controllers.pod_writes import (
    all_at_once,
    create_pod,
    delete_pod,
    namespace_is_going,
    slow_start,
)
from localkube.controllers.pods import (
    Rank,
    Standing,
    deletion_rank,
    is_active,
    is_finished,
    is_terminating,
    pod_from_template,
    seconds_to_available,
    stamp,
    standing_of,
)
from localkube.controllers.run import Context, Controller, Watch


class ReplicaPod(msgspec.Struct, frozen=True, gc=False):
    """What a ReplicaSet has to know of a pod."""

    key: Key
    labels: dict[str, str]
    node: str
    active: bool
    leaving: bool  # terminating, and not ended yet
    standing: Standing

    @property
    def uid(self) -> str:
        return self.standing.uid

    @property
    def ready(self) -> bool:
        return self.standing.ready_since_s is not None

    def seconds_to_available(self, min_ready_s: int, now_s: float) -> float | None:
        return seconds_to_available(self.standing.ready_since_s, min_ready_s, now_s)


def replica_pod_of(pod: Obj) -> ReplicaPod:
    finished, terminating = is_finished(pod), is_terminating(pod)
    return ReplicaPod(
        key=key_of(pod),
        labels=pod["metadata"].get("labels") or {},
        node=pod["spec"].get("nodeName", ""),
        active=not finished and not terminating,
        leaving=terminating and not finished,
        standing=standing_of(pod),
    )


BURST = 500  # pods created or deleted in one reconcile
_LATE_S = 1.0  # until the next look, while the mirrors do not show our own writes yet


def controllers() -> list[Controller]:
    return [
        _controller("replicaset-controller", REPLICA_SETS),
        _controller("replication-controller", REPLICATION_CONTROLLERS),
    ]


def _controller(name: str, resource: Resource) -> Controller:
    expectations, adopters = Expectations(), ownership.Adopters(resource.kind)
    pods = Owned(resource.kind, replica_pod_of)

    async def reconcile(key: Key, context: Context) -> float | None:
        owner = context.of(resource).get(key[1], key[0])
        if owner is None:
            expectations.forget(key)
            return None
        return await _Replicas(owner, resource, context, expectations, pods).step()

    def add_indexes(context: Context) -> None:
        ownership.add_indexes(context.of(PODS))
        ownership.add_indexes(context.of(resource))
        adopters.follow(context.of(resource))
        pods.follow(context.of(PODS))

    watches = (Watch(resource), Watch(PODS, adopters.keys()))
    return Controller(name, watches, reconcile, add_indexes=add_indexes)


class _Replicas:
    """One reconcile of one set."""

    def __init__(
        self,
        owner: Obj,
        resource: Resource,
        context: Context,
        expectations: Expectations,
        pods: Owned[ReplicaPod],
    ) -> None:
        self.owner = owner
        self.uid: str = owner["metadata"]["uid"]
        self.key = (owner["metadata"]["namespace"], owner["metadata"]["name"])
        self.resource = resource
        self.context = context
        self.expectations = expectations
        self.pods = pods
        self.now = context.now()

    async def step(self) -> float | None:
        selector = ownership.selector_of(self.owner)
        own = self.pods.of(self.uid)
        fitting = [pod for pod in own if selector.matches(pod.labels)]
        active = [pod for pod in fitting if pod.active]
        active += await self._adopted()
        if len(fitting) < len(own):
            # Somebody has changed their labels: they become orphans.
            unselected = [p for p in own if p.active and not selector.matches(p.labels)]
            await self._release(unselected)
        seen = self._sees_own_writes(active)
        failure: KubeError | None = None
        if seen and not is_terminating(self.owner):
            failure = await self._correct(active)
        # Before a failure is raised, because the status carries the condition ReplicaFailure.
        await self._write_status(active, sum(pod.leaving for pod in fitting), failure)
        if failure is not None and not namespace_is_going(failure):
            raise failure
        return self._next_look(active, seen)

    # -- which pods belong to the set ----------------------------------------------------------

    async def _adopted(self) -> list[ReplicaPod]:
        selector = ownership.selector_of(self.owner)
        found = ownership.orphans(self.context.of(PODS), self.owner)

        def fits(pod: Obj) -> bool:
            return is_active(pod) and selector.matches(pod["metadata"].get("labels") or {})

        return [
            replica_pod_of(pod)
            for pod in await self._claim(ownership.judge(self.owner, found, fits))
        ]

    async def _release(self, unselected: list[ReplicaPod]) -> None:
        if not is_terminating(self.owner):
            await self._claim(ownership.Claim([], [], self._pods(unselected)))

    async def _claim(self, judged: ownership.Claim) -> list[Obj]:
        ties = ownership.Ties(self.resource)
        return await ownership.claim(self.context, self.owner, ties, PODS, judged)

    def _pods(self, pods: list[ReplicaPod]) -> list[Obj]:
        mirror = self.context.of(PODS)
        found = (mirror.get(name, namespace) for namespace, name in (f.key for f in pods))
        return [pod for pod in found if pod is not None]

    def _sees_own_writes(self, active: list[ReplicaPod]) -> bool:
        alive = {pod.uid for pod in active}
        return self.expectations.met(self.key, self.context.of, alive, self.now.timestamp())

    # -- create or delete ----------------------------------------------------------------------

    async def _correct(self, active: list[ReplicaPod]) -> KubeError | None:
        difference = self.owner["spec"].get("replicas", 1) - len(active)
        if difference > 0:
            return await self._create(min(difference, BURST))
        if difference < 0:
            return await self._delete(self._surplus(active, min(-difference, BURST)))
        return None

    async def _create(self, count: int) -> KubeError | None:
        pod = pod_from_template(self.owner, self.resource, self.owner["spec"]["template"])
        job = partial(create_pod, self.context, self.owner, pod)
        made, failure = await slow_start([job] * count)
        for created in made:
            self.expectations.wrote(self.key, PODS, created, self.now.timestamp())
        return failure

    def _surplus(self, active: list[ReplicaPod], count: int) -> list[ReplicaPod]:
        if count == len(active):
            return active
        on_node = Counter(pod.node for pod in self._relatives())
        now_s = self.now.timestamp()

        def rank(pod: ReplicaPod) -> Rank:
            return deletion_rank(pod.standing, on_node[pod.node], now_s)

        return sorted(active, key=rank)[:count]

    def _relatives(self) -> list[ReplicaPod]:
        """The active pods of all sets of one Deployment: a node that has many of them loses one
        first."""
        uids, owner = [self.uid], controller_uid(self.owner)
        if owner:
            sets = self.context.of(self.resource).by(ownership.BY_CONTROLLER, owner)
            uids = [each["metadata"]["uid"] for each in sets]
        return [pod for uid in uids for pod in self.pods.of(uid) if pod.active]

    async def _delete(self, surplus: list[ReplicaPod]) -> KubeError | None:
        # Before the requests: the mirror may show the deletions before the last answer is here.
        for pod in surplus:
            self.expectations.deleted(self.key, pod.uid, self.now.timestamp())
        doomed = [delete_pod(self.context, self.owner, f.key[1], f.uid) for f in surplus]
        try:
            await all_at_once(doomed)
        except KubeError as error:
            # Some pods were not deleted, so the expectation would only end with its timeout.
            self.expectations.forget(self.key)
            return error
        return None

    # -- status --------------------------------------------------------------------------------

    async def _write_status(
        self, active: list[ReplicaPod], leaving: int, failure: KubeError | None
    ) -> None:
        told = leaving if self.resource is REPLICA_SETS else None
        status = status_of(self.owner, active, told, failure, self.now)
        if status != self.owner.get("status"):
            await self.context.kube.update_status(self.resource, {**self.owner, "status": status})

    def _next_look(self, active: list[ReplicaPod], seen: bool) -> float | None:
        min_ready_s = self.owner["spec"].get("minReadySeconds", 0)
        later = [0.0 if seen else _LATE_S]
        if min_ready_s:
            now_s = self.now.timestamp()
            later += [pod.seconds_to_available(min_ready_s, now_s) or 0.0 for pod in active]
        return min(filter(None, later), default=None)


FAILURE = "ReplicaFailure"


def status_of(
    owner: Obj,
    active: Sequence[ReplicaPod],
    terminating: int | None,
    failure: KubeError | None,
    now: datetime.datetime,
) -> Obj:
    """`terminating`: None for ReplicationControllers, whose status has no such field."""
    spec, now_s = owner["spec"], now.timestamp()
    min_ready_s = spec.get("minReadySeconds", 0)
    wanted = (spec["template"].get("metadata") or {}).get("labels") or {}
    counts = {
        "fullyLabeledReplicas": sum(wanted.items() <= pod.labels.items() for pod in active),
        "readyReplicas": sum(pod.ready for pod in active),
        "availableReplicas": sum(
            pod.seconds_to_available(min_ready_s, now_s) == 0 for pod in active
        ),
    }
    status: Obj = {"replicas": len(active), **{k: count for k, count in counts.items() if count}}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    generation = owner["metadata"].get("generation", 0)
    if generation:
        status["observedGeneration"] = generation
    conditions = _conditions(owner, len(active), failure, now)
    if conditions:
        status["conditions"] = conditions
    return status


def _conditions(
    owner: Obj, active: int, failure: KubeError | None, now: datetime.datetime
) -> list[Obj]:
    """A failure keeps the message of its first occurrence until it is over."""
    known: list[Obj] = owner.get("status", {}).get("conditions") or []
    if failure is None:
        return [condition for condition in known if condition["type"] != FAILURE]
    if any(condition["type"] == FAILURE for condition in known):
        return known
    too_few = active < owner["spec"].get("replicas", 1)
    new = {
        "type": FAILURE,
        "status": "True",
        "reason": "FailedCreate" if too_few else "FailedDelete",
        "message": str(failure),
        "lastTransitionTime": stamp(now),
    }
    return [*known, new]
