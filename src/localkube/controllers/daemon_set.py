"""DaemonSet: one pod on every node that suits it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from kubeclient.errors import KubeError
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key, key_of
from kubeclient.objects import Obj
from kubeclient.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from localkube.controllers import daemon_set_plan as plans
from localkube.controllers import daemon_set_pods as pods
from localkube.controllers import ownership, revisions, rollout
from localkube.controllers.backoff import Backoff
from localkube.controllers.daemon_set_plan import Daemon, Fits, Plan
from localkube.controllers.daemon_set_pods import Fact
from localkube.controllers.daemon_set_status import status_of
from localkube.controllers.expectations import Expectations
from localkube.controllers.owned import Owned
from localkube.controllers.pod_writes import (
    all_at_once,
    create_pod,
    delete_pod,
    namespace_is_going,
    slow_start,
)
from localkube.controllers.pods import is_terminating, label
from localkube.controllers.run import Context, Controller, Watch, controlled_by
from localkube.placement import NodeOffer, node_offer

BURST = 250  # pods made or removed in one go
_LATE_S = 1.0  # when the watch has not shown by then what we did


class _Nodes:
    """The nodes as far as they matter here. A heartbeat is no change."""

    def __init__(self) -> None:
        self.known: dict[str, NodeOffer] = {}

    def keys(self, node: Obj, context: Context) -> Iterable[Key]:
        """For a Watch: all sets, when a node has really changed."""
        name = node["metadata"]["name"]
        current = context.of(NODES).get(name)
        before = self.known.pop(name, None)
        after = None if current is None else node_offer(current)
        if after is not None:
            self.known[name] = after
        if after != before:
            for daemon_set in context.of(DAEMON_SETS):
                yield key_of(daemon_set)


@dataclass(frozen=True, slots=True)
class _Tools:
    """What the controller keeps from one look to the next."""

    expectations: Expectations
    nodes: _Nodes
    failures: Backoff
    facts: Owned[Fact]


def controller() -> Controller:
    expectations, adopters, nodes = Expectations(), ownership.Adopters("DaemonSet"), _Nodes()
    failures = Backoff(first_s=1.0, longest_s=900.0)
    facts = Owned("DaemonSet", pods.fact_of)
    tools = _Tools(expectations, nodes, failures, facts)

    async def reconcile(key: Key, context: Context) -> float | None:
        daemon_set = context.of(DAEMON_SETS).get(key[1], key[0])
        if daemon_set is None:
            expectations.forget(key)
            return None
        if is_terminating(daemon_set):
            return None
        return await _Set(daemon_set, key, context, tools).step()

    def add_indexes(context: Context) -> None:
        for resource in (PODS, CONTROLLER_REVISIONS):
            ownership.add_indexes(context.of(resource))
        adopters.follow(context.of(DAEMON_SETS))
        facts.follow(context.of(PODS))

    return Controller(
        "daemonset-controller",
        (
            Watch(DAEMON_SETS),
            Watch(PODS, adopters.keys()),
            Watch(NODES, nodes.keys),
            Watch(CONTROLLER_REVISIONS, controlled_by("DaemonSet")),
        ),
        reconcile,
        add_indexes=add_indexes,
    )


class _Set:
    """One look at one set."""

    def __init__(self, daemon_set: Obj, key: Key, context: Context, tools: _Tools) -> None:
        self.set = daemon_set
        self.spec = daemon_set["spec"]
        self.key = key
        self.context = context
        self.tools = tools
        self.now = context.now()
        self.now_s = self.now.timestamp()
        self.fits: Fits = pods.fits(daemon_set, tools.nodes.known)
        self.found: dict[str, Fact] = {}  # by name
        self.suffix = ""

    async def step(self) -> float | None:
        known = await revisions.claimed(self.context, self.set, DAEMON_SETS)
        collisions = self.set.get("status", {}).get("collisionCount", 0)
        current, collisions = await revisions.current(
            self.context, self.set, DAEMON_SETS, known, collisions
        )
        self.suffix = label(current, revisions.POD_LABEL) or current["metadata"]["name"]
        self.found = {fact.name: fact for fact in await self._claimed()}
        daemons = self._daemons()
        seen = self._has_seen_its_doings()
        failure: KubeError | None = None
        if seen:
            failure = await self._act(daemons)
        status = status_of(self.set, self.fits, daemons, collisions, seen)
        if status != self.set.get("status"):
            changed = {**self.set, "status": status}
            await self.context.kube.update_status(DAEMON_SETS, changed)
        if failure is not None and not namespace_is_going(failure):
            raise failure
        await self._forget_history(known, current)
        return self._next_look(seen)

    async def _claimed(self) -> list[Fact]:
        selector = ownership.selector_of(self.set)
        mirror, namespace = self.context.of(PODS), self.set["metadata"]["namespace"]

        def fits(pod: Obj) -> bool:
            return selector.matches(pod["metadata"].get("labels") or {})

        own = self.tools.facts.of(self.set["metadata"]["uid"])
        strangers = [mirror.get(f.name, namespace) for f in own if not selector.matches(f.labels)]
        judged = ownership.judge(self.set, ownership.orphans(mirror, self.set), fits)
        judged.release.extend(pod for pod in strangers if pod is not None)
        ties = ownership.Ties(DAEMON_SETS)
        adopted = await ownership.claim(self.context, self.set, ties, PODS, judged)
        kept = [fact for fact in own if selector.matches(fact.labels)]
        return kept + [pods.fact_of(pod) for pod in adopted]

    def _daemons(self) -> dict[str, list[Daemon]]:
        """By node. What has ended and only waits to be removed is nobody's concern."""
        generation = pods.template_generation(self.set)
        daemons: dict[str, list[Daemon]] = {}
        for _, fact in sorted(self.found.items()):
            over = fact.terminating and fact.phase in ("Succeeded", "Failed")
            if fact.node and not over:
                daemons.setdefault(fact.node, []).append(self._daemon(fact, generation))
        return daemons

    def _daemon(self, fact: Fact, generation: str) -> Daemon:
        return Daemon(
            name=fact.name,
            updated=fact.is_updated(self.suffix, generation),
            phase=fact.phase,
            ready=fact.ready_since_s is not None,
            available=self._seconds_to_available(fact) == 0,
            terminating=fact.terminating,
            placed=fact.placed,
            created=fact.created,
        )

    def _has_seen_its_doings(self) -> bool:
        alive = {fact.uid for fact in self.found.values() if not fact.terminating}
        return self.tools.expectations.met(self.key, self.context.of, alive, self.now_s)

    # -- acting --------------------------------------------------------------------------------

    async def _act(self, daemons: plans.Daemons) -> KubeError | None:
        rolling = self.spec["updateStrategy"].get("rollingUpdate") or {}
        updates = self.spec["updateStrategy"]["type"] == "RollingUpdate"
        surge, wanted = rolling.get("maxSurge", 0), self._wanted()
        surges = updates and rollout.resolved(surge, 1, round_up=True) > 0
        held = {node for node in daemons if self._waits(node)}
        todo = plans.tend(self.fits, daemons, surges, held)
        self._say_ended(todo)
        failure = await self._carry_out(todo)
        if failure is None and updates and not (todo.create or todo.delete):
            max_surge = rollout.resolved(surge, wanted, round_up=True)
            missing = rolling.get("maxUnavailable", 0)
            max_missing = rollout.resolved(missing, wanted, round_up=True)
            todo = plans.update(self.fits, daemons, max_surge, max_missing)
            failure = await self._carry_out(todo)
        return failure

    def _wanted(self) -> int:
        return sum(fit is plans.Fit.RUN for fit in self.fits.values())

    async def _carry_out(self, todo: Plan) -> KubeError | None:
        expectations = self.tools.expectations
        jobs = [partial(self._create, node) for node in todo.create[:BURST]]
        made, failure = await slow_start(jobs)
        for created in made:
            expectations.wrote(self.key, PODS, created, self.now_s)
        leaving = [self.found[name] for name in todo.delete[:BURST]]
        for fact in leaving:
            expectations.deleted(self.key, fact.uid, self.now_s)
        try:
            await all_at_once(
                [delete_pod(self.context, self.set, fact.name, fact.uid) for fact in leaving]
            )
        except KubeError as error:
            expectations.forget(self.key)
            failure = failure or error
        return failure

    async def _create(self, node: str) -> Obj:
        pod = pods.new_pod(self.set, node, self.suffix)
        return await create_pod(self.context, self.set, pod)

    async def _forget_history(self, known: list[Obj], current: Obj) -> None:
        used = {fact.revision for fact in self.found.values()}
        live = {
            revision["metadata"]["name"]
            for revision in known
            if label(revision, revisions.POD_LABEL) in used
        }
        live.add(current["metadata"]["name"])
        limit = self.spec.get("revisionHistoryLimit", 10)
        await revisions.forget(self.context, revisions.surplus(known, live, limit))

    # -- pods that have ended ------------------------------------------------------------------

    def _backoff_key(self, node: str) -> tuple[str, ...]:
        generation = self.set.get("status", {}).get("observedGeneration", 0)
        return self.set["metadata"]["uid"], str(generation), node

    def _waits(self, node: str) -> float:
        return self.tools.failures.left_s(self._backoff_key(node), self.now_s)

    def _say_ended(self, todo: Plan) -> None:
        namespace = self.set["metadata"]["namespace"]
        for node, name in todo.failed:
            self.tools.failures.next(self._backoff_key(node), self.now_s)
            text = f"Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it"
            self.context.events.event(self.set, WARNING, "FailedDaemonPod", text)
        for node, name in todo.succeeded:
            text = (
                f"Found succeeded daemon pod {namespace}/{name} on node {node}, "
                "will try to delete it"
            )
            self.context.events.event(self.set, NORMAL, "SucceededDaemonPod", text)

    def _seconds_to_available(self, fact: Fact) -> float | None:
        return fact.seconds_to_available(self.spec.get("minReadySeconds", 0), self.now_s)

    def _next_look(self, seen: bool) -> float | None:
        """When a pod becomes available by time alone, or a failed one may be replaced."""
        waits = [self._seconds_to_available(fact) for fact in self.found.values()]
        waits += [self._waits(f.node) for f in self.found.values() if f.phase == "Failed"]
        if not seen:
            waits.append(_LATE_S)
        return min(filter(None, waits), default=None)
