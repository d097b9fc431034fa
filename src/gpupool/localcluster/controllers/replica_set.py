"""ReplicaSet, and its elder the ReplicationController: so many pods of one template, no more and
no fewer."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from gpupool.contract.objects import Obj
from gpupool.kube.errors import KubeError
from gpupool.kube.mirror import Key, controller_uid
from gpupool.kube.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from gpupool.localcluster.controllers import ownership
from gpupool.localcluster.controllers.expectations import Expectations
from gpupool.localcluster.controllers.pod_writes import (
    all_at_once,
    create_pod,
    delete_pod,
    namespace_is_going,
    slow_start,
)
from gpupool.localcluster.controllers.pods import (
    deletion_rank,
    is_active,
    is_finished,
    is_terminating,
    pod_from_template,
    seconds_to_available,
)
from gpupool.localcluster.controllers.replica_set_status import status_of
from gpupool.localcluster.controllers.run import Context, Controller, Watch

BURST = 500  # pods made or removed in one go
_LATE_S = 1.0  # when the watch has not shown by then what we did


def controllers() -> list[Controller]:
    return [
        _controller("replicaset-controller", REPLICA_SETS),
        _controller("replication-controller", REPLICATION_CONTROLLERS),
    ]


def _controller(name: str, resource: Resource) -> Controller:
    expectations, adopters = Expectations(), ownership.Adopters(resource.kind)

    async def reconcile(key: Key, context: Context) -> float | None:
        owner = context.of(resource).get(key[1], key[0])
        if owner is None:
            expectations.forget(key)
            return None
        return await _Replicas(owner, resource, key, context, expectations).step()

    def prepare(context: Context) -> None:
        ownership.add_indexes(context.of(PODS))
        ownership.add_indexes(context.of(resource))
        adopters.follow(context.of(resource))

    watches = (Watch(resource), Watch(PODS, adopters.keys()))
    return Controller(name, watches, reconcile, prepare=prepare)


class _Replicas:
    """One look at one set."""

    def __init__(
        self,
        owner: Obj,
        resource: Resource,
        key: Key,
        context: Context,
        expectations: Expectations,
    ) -> None:
        self.owner = owner
        self.resource = resource
        self.key = key
        self.context = context
        self.expectations = expectations
        self.now = context.now()

    async def step(self) -> float | None:
        fits = self._fits()
        found = ownership.candidates(self.context.of(PODS), self.owner)
        judged = ownership.judge(self.owner, filter(is_active, found), fits)
        ties = ownership.Ties(self.resource)
        active = await ownership.claim(self.context, self.owner, ties, PODS, judged)
        uid = self.owner["metadata"]["uid"]
        leaving = [
            pod
            for pod in found
            if is_terminating(pod)
            and not is_finished(pod)
            and controller_uid(pod) == uid
            and fits(pod)
        ]
        seen = self._has_seen_its_doings(active)
        failure: KubeError | None = None
        if seen and not is_terminating(self.owner):
            failure = await self._correct(active)
        await self._write_status(active, leaving, failure)
        if failure is not None and not namespace_is_going(failure):
            raise failure
        return self._next_look(active, seen)

    def _fits(self) -> Callable[[Obj], bool]:
        selector = ownership.selector_of(self.owner)
        if selector is None:
            return lambda pod: False
        return lambda pod: selector.matches(pod["metadata"].get("labels") or {})

    def _has_seen_its_doings(self, active: list[Obj]) -> bool:
        alive = {pod["metadata"]["uid"] for pod in active}
        return self.expectations.met(self.key, self.context.of, alive, self.now.timestamp())

    # -- pods ----------------------------------------------------------------------------------

    async def _correct(self, active: list[Obj]) -> KubeError | None:
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

    def _surplus(self, active: list[Obj], count: int) -> list[Obj]:
        if count == len(active):
            return active
        on_node = Counter(pod["spec"].get("nodeName") for pod in self._relatives())

        def rank(pod: Obj) -> object:
            return deletion_rank(pod, on_node[pod["spec"].get("nodeName")], self.now)

        return sorted(active, key=rank)[:count]  # type: ignore[arg-type]  # tuples do compare

    def _relatives(self) -> list[Obj]:
        """Active pods of all sets with the same owner: those of one deployment."""
        pods, owner = self.context.of(PODS), controller_uid(self.owner)
        sets = [self.owner]
        if owner:
            sets = self.context.of(self.resource).by(ownership.BY_CONTROLLER, owner)
        uids = [each["metadata"]["uid"] for each in sets]
        found = (pod for uid in uids for pod in pods.by(ownership.BY_CONTROLLER, uid))
        return [pod for pod in found if is_active(pod)]

    async def _delete(self, surplus: list[Obj]) -> KubeError | None:
        for pod in surplus:
            uid = pod["metadata"]["uid"]
            self.expectations.deleted(self.key, uid, self.now.timestamp())
        try:
            await all_at_once([delete_pod(self.context, self.owner, pod) for pod in surplus])
        except KubeError as error:
            self.expectations.forget(self.key)
            return error
        return None

    # -- afterwards ----------------------------------------------------------------------------

    async def _write_status(
        self, active: list[Obj], leaving: list[Obj], failure: KubeError | None
    ) -> None:
        counted = len(leaving) if self.resource is REPLICA_SETS else None
        status = status_of(self.owner, active, counted, failure, self.now)
        if status != self.owner.get("status"):
            await self.context.kube.update_status(self.resource, {**self.owner, "status": status})

    def _next_look(self, active: list[Obj], seen: bool) -> float | None:
        min_ready_s = self.owner["spec"].get("minReadySeconds", 0)
        waits = [seconds_to_available(pod, min_ready_s, self.now) for pod in active]
        later = [wait for wait in waits if wait]
        if not seen:
            later.append(_LATE_S)
        return min(later) if later else None
