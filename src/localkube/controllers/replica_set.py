"""ReplicaSet, and its elder the ReplicationController: so many pods of one template, no more and
no fewer."""

from collections import Counter
from functools import partial

from kubeclient.errors import KubeError
from kubeclient.mirror import Key, controller_uid
from kubeclient.objects import Obj
from kubeclient.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from localkube.controllers import ownership
from localkube.controllers.expectations import Expectations
from localkube.controllers.owned import Owned
from localkube.controllers.pod_writes import (
    all_at_once,
    create_pod,
    delete_pod,
    namespace_is_going,
    slow_start,
)
from localkube.controllers.pods import (
    Rank,
    deletion_rank,
    is_active,
    is_terminating,
    pod_from_template,
)
from localkube.controllers.replica_facts import Fact, fact_of
from localkube.controllers.replica_set_status import status_of
from localkube.controllers.run import Context, Controller, Watch

BURST = 500  # pods made or removed in one go
_LATE_S = 1.0  # when the watch has not shown by then what we did


def controllers() -> list[Controller]:
    return [
        _controller("replicaset-controller", REPLICA_SETS),
        _controller("replication-controller", REPLICATION_CONTROLLERS),
    ]


def _controller(name: str, resource: Resource) -> Controller:
    expectations, adopters = Expectations(), ownership.Adopters(resource.kind)
    facts = Owned(resource.kind, fact_of)

    async def reconcile(key: Key, context: Context) -> float | None:
        owner = context.of(resource).get(key[1], key[0])
        if owner is None:
            expectations.forget(key)
            return None
        return await _Replicas(owner, resource, context, expectations, facts).step()

    def add_indexes(context: Context) -> None:
        ownership.add_indexes(context.of(PODS))
        ownership.add_indexes(context.of(resource))
        adopters.follow(context.of(resource))
        facts.follow(context.of(PODS))

    watches = (Watch(resource), Watch(PODS, adopters.keys()))
    return Controller(name, watches, reconcile, add_indexes=add_indexes)


class _Replicas:
    """One look at one set."""

    def __init__(
        self,
        owner: Obj,
        resource: Resource,
        context: Context,
        expectations: Expectations,
        facts: Owned[Fact],
    ) -> None:
        self.owner = owner
        self.uid: str = owner["metadata"]["uid"]
        self.key = (owner["metadata"]["namespace"], owner["metadata"]["name"])
        self.resource = resource
        self.context = context
        self.expectations = expectations
        self.facts = facts
        self.now = context.now()

    async def step(self) -> float | None:
        selector = ownership.selector_of(self.owner)
        own = self.facts.of(self.uid)
        fitting = [fact for fact in own if selector.matches(fact.labels)]
        active = [fact for fact in fitting if fact.active]
        active += await self._adopted()
        if len(fitting) < len(own):
            strangers = [f for f in own if f.active and not selector.matches(f.labels)]
            await self._let_go(strangers)
        seen = self._has_seen_its_doings(active)
        failure: KubeError | None = None
        if seen and not is_terminating(self.owner):
            failure = await self._correct(active)
        await self._write_status(active, sum(fact.leaving for fact in fitting), failure)
        if failure is not None and not namespace_is_going(failure):
            raise failure
        return self._next_look(active, seen)

    # -- whose are they? -----------------------------------------------------------------------

    async def _adopted(self) -> list[Fact]:
        selector = ownership.selector_of(self.owner)
        found = ownership.orphans(self.context.of(PODS), self.owner)

        def fits(pod: Obj) -> bool:
            return is_active(pod) and selector.matches(pod["metadata"].get("labels") or {})

        return [fact_of(pod) for pod in await self._claim(ownership.judge(self.owner, found, fits))]

    async def _let_go(self, strangers: list[Fact]) -> None:
        if not is_terminating(self.owner):
            await self._claim(ownership.Claim([], [], self._pods(strangers)))

    async def _claim(self, judged: ownership.Claim) -> list[Obj]:
        ties = ownership.Ties(self.resource)
        return await ownership.claim(self.context, self.owner, ties, PODS, judged)

    def _pods(self, facts: list[Fact]) -> list[Obj]:
        mirror = self.context.of(PODS)
        found = (mirror.get(name, namespace) for namespace, name in (f.key for f in facts))
        return [pod for pod in found if pod is not None]

    def _has_seen_its_doings(self, active: list[Fact]) -> bool:
        alive = {fact.uid for fact in active}
        return self.expectations.met(self.key, self.context.of, alive, self.now.timestamp())

    # -- how many? -----------------------------------------------------------------------------

    async def _correct(self, active: list[Fact]) -> KubeError | None:
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

    def _surplus(self, active: list[Fact], count: int) -> list[Fact]:
        if count == len(active):
            return active
        on_node = Counter(fact.node for fact in self._relatives())
        now_s = self.now.timestamp()

        def rank(fact: Fact) -> Rank:
            return deletion_rank(fact.standing, on_node[fact.node], now_s)

        return sorted(active, key=rank)[:count]

    def _relatives(self) -> list[Fact]:
        """Active pods of all sets with the same owner: those of one deployment."""
        uids, owner = [self.uid], controller_uid(self.owner)
        if owner:
            sets = self.context.of(self.resource).by(ownership.BY_CONTROLLER, owner)
            uids = [each["metadata"]["uid"] for each in sets]
        return [fact for uid in uids for fact in self.facts.of(uid) if fact.active]

    async def _delete(self, surplus: list[Fact]) -> KubeError | None:
        for fact in surplus:
            self.expectations.deleted(self.key, fact.uid, self.now.timestamp())
        doomed = [delete_pod(self.context, self.owner, f.key[1], f.uid) for f in surplus]
        try:
            await all_at_once(doomed)
        except KubeError as error:
            self.expectations.forget(self.key)
            return error
        return None

    # -- afterwards ----------------------------------------------------------------------------

    async def _write_status(
        self, active: list[Fact], leaving: int, failure: KubeError | None
    ) -> None:
        told = leaving if self.resource is REPLICA_SETS else None
        status = status_of(self.owner, active, told, failure, self.now)
        if status != self.owner.get("status"):
            await self.context.kube.update_status(self.resource, {**self.owner, "status": status})

    def _next_look(self, active: list[Fact], seen: bool) -> float | None:
        min_ready_s = self.owner["spec"].get("minReadySeconds", 0)
        later = [0.0 if seen else _LATE_S]
        if min_ready_s:
            now_s = self.now.timestamp()
            later += [fact.seconds_to_available(min_ready_s, now_s) or 0.0 for fact in active]
        return min(filter(None, later), default=None)
