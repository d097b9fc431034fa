"""The DaemonSet controller: one pod on every node that suits it."""

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
from localkube.controllers import ownership, revisions
from localkube.controllers.daemon_set_plan import Daemon, Fits, Plan, status_of
from localkube.controllers.daemon_set_pods import DaemonPod
from localkube.controllers.expectations import Expectations
from localkube.controllers.ownership import Owned
from localkube.controllers.pod_writes import (
    all_at_once,
    create_pod,
    delete_pod,
    namespace_is_going,
    slow_start,
)
from localkube.controllers.pods import count_of, is_terminating, label
from localkube.controllers.run import Context, Controller, Watch, controlled_by
from localkube.placement import NodeOffer, node_offer


class Backoff:
    """Exponential backoff by key."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._known: dict[
            tuple[str, ...], tuple[float, float]
        ] = {}  # delay in seconds, and its start

    def next(self, key: tuple[str, ...], now_s: float) -> None:
        """Records an attempt; the next one has to wait longer."""
        delay_s, since_s = self._known.get(key, (0.0, now_s))
        if now_s - since_s > 2 * self._longest_s:
            delay_s = 0.0  # the last attempt is long ago: start again
        longer_s = min(2 * delay_s, self._longest_s) or self._first_s
        self._known[key] = longer_s, now_s
        if len(self._known) > 10_000:
            self._forget(now_s)

    def left_s(self, key: tuple[str, ...], now_s: float) -> float:
        delay_s, since_s = self._known.get(key, (0.0, 0.0))
        return max(0.0, since_s + delay_s - now_s)

    def _forget(self, now_s: float) -> None:
        limit_s = 2 * self._longest_s
        self._known = {k: v for k, v in self._known.items() if now_s - v[1] <= limit_s}


# As in Kubernetes.
BURST = 250  # pods created or deleted in one reconcile
_LATE_S = 1.0  # until the next look, while the mirrors do not show our own writes yet


class _Nodes:
    """What DaemonSets need to know of the nodes. A heartbeat does not change it, so that the status
    posts of thousands of nodes do not reconcile every DaemonSet."""

    def __init__(self) -> None:
        self.known: dict[str, NodeOffer] = {}

    def keys(self, node: Obj, context: Context) -> Iterable[Key]:
        """For a Watch: all DaemonSets, if what the node offers has changed."""
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
    """What the controller keeps from one reconcile to the next."""

    expectations: Expectations
    nodes: _Nodes
    failures: Backoff
    pods_of: Owned[DaemonPod]


def controller() -> Controller:
    expectations, adopters, nodes = Expectations(), ownership.Adopters("DaemonSet"), _Nodes()
    # As in Kubernetes: from one second to a quarter of an hour.
    failures = Backoff(first_s=1.0, longest_s=900.0)
    pods_of = Owned("DaemonSet", pods.daemon_pod_of)
    tools = _Tools(expectations, nodes, failures, pods_of)

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
        pods_of.follow(context.of(PODS))

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
    """One reconcile of one DaemonSet."""

    def __init__(self, daemon_set: Obj, key: Key, context: Context, tools: _Tools) -> None:
        self.set = daemon_set
        self.spec = daemon_set["spec"]
        self.key = key
        self.context = context
        self.tools = tools
        self.now = context.now()
        self.now_s = self.now.timestamp()
        self.fits: Fits = pods.fits(daemon_set, tools.nodes.known)
        self.found: dict[str, DaemonPod] = {}  # by name
        self.suffix = ""

    async def step(self) -> float | None:
        known = await revisions.claimed(self.context, self.set, DAEMON_SETS)
        collisions = self.set.get("status", {}).get("collisionCount", 0)
        current, collisions = await revisions.current(
            self.context, self.set, DAEMON_SETS, known, collisions
        )
        self.suffix = label(current, revisions.POD_LABEL) or current["metadata"]["name"]
        self.found = {pod.name: pod for pod in await self._claimed()}
        daemons = self._daemons()
        seen = self._sees_own_writes()
        failure: KubeError | None = None
        if seen:
            failure = await self._act(daemons)
        # Before a failure is raised: the status is written even while pods cannot be created.
        status = status_of(self.set, self.fits, daemons, collisions, seen)
        if status != self.set.get("status"):
            changed = {**self.set, "status": status}
            await self.context.kube.update_status(DAEMON_SETS, changed)
        if failure is not None and not namespace_is_going(failure):
            raise failure
        await self._forget_history(known, current)
        return self._next_look(seen)

    async def _claimed(self) -> list[DaemonPod]:
        selector = ownership.selector_of(self.set)
        mirror, namespace = self.context.of(PODS), self.set["metadata"]["namespace"]
        own = self.tools.pods_of.of(self.set["metadata"]["uid"])
        unselected = [mirror.get(p.name, namespace) for p in own if not selector.matches(p.labels)]
        found = ownership.orphans(mirror, self.set)
        judged = ownership.judge(self.set, found, ownership.selected_by(self.set))
        judged.release.extend(pod for pod in unselected if pod is not None)
        ties = ownership.Ties(DAEMON_SETS)
        adopted = await ownership.claim(self.context, self.set, ties, PODS, judged)
        kept = [pod for pod in own if selector.matches(pod.labels)]
        return kept + [pods.daemon_pod_of(pod) for pod in adopted]

    def _daemons(self) -> dict[str, list[Daemon]]:
        """By node. Leaves out pods that have ended and are being deleted."""
        generation = pods.template_generation(self.set)
        daemons: dict[str, list[Daemon]] = {}
        for _, pod in sorted(self.found.items()):
            over = pod.terminating and pod.phase in ("Succeeded", "Failed")
            if pod.node and not over:
                daemons.setdefault(pod.node, []).append(self._daemon(pod, generation))
        return daemons

    def _daemon(self, pod: DaemonPod, generation: str) -> Daemon:
        return Daemon(
            name=pod.name,
            updated=pod.is_updated(self.suffix, generation),
            phase=pod.phase,
            ready=pod.ready_since_s is not None,
            available=self._seconds_to_available(pod) == 0,
            terminating=pod.terminating,
            placed=pod.placed,
            created=pod.created,
        )

    def _sees_own_writes(self) -> bool:
        alive = {pod.uid for pod in self.found.values() if not pod.terminating}
        return self.tools.expectations.met(self.key, self.context.of, alive, self.now_s)

    # -- acting --------------------------------------------------------------------------------

    async def _act(self, daemons: plans.Daemons) -> KubeError | None:
        rolling = self.spec["updateStrategy"].get("rollingUpdate") or {}
        updates = self.spec["updateStrategy"]["type"] == "RollingUpdate"
        surge, wanted = rolling.get("maxSurge", 0), self._wanted()
        surges = updates and count_of(surge, 1, round_up=True) > 0
        held = {node for node in daemons if self._waits(node)}
        todo = plans.tend(self.fits, daemons, surges, held)
        self._say_ended(todo)
        failure = await self._carry_out(todo)
        # Not after a create or a delete: the update counts available pods in `daemons`, which does
        # not show these writes.
        if failure is None and updates and not (todo.create or todo.delete):
            max_surge = count_of(surge, wanted, round_up=True)
            missing = rolling.get("maxUnavailable", 0)
            max_missing = count_of(missing, wanted, round_up=True)
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
        # Before the requests: the mirror may show the deletions before the last answer is here.
        for pod in leaving:
            expectations.deleted(self.key, pod.uid, self.now_s)
        try:
            await all_at_once(
                [delete_pod(self.context, self.set, pod.name, pod.uid) for pod in leaving]
            )
        except KubeError as error:
            # Some pods were not deleted, so the expectation would only end with its timeout.
            expectations.forget(self.key)
            failure = failure or error
        return failure

    async def _create(self, node: str) -> Obj:
        pod = pods.new_pod(self.set, node, self.suffix)
        return await create_pod(self.context, self.set, pod)

    async def _forget_history(self, known: list[Obj], current: Obj) -> None:
        used = {pod.revision for pod in self.found.values()}
        live = {
            revision["metadata"]["name"]
            for revision in known
            if label(revision, revisions.POD_LABEL) in used
        }
        live.add(current["metadata"]["name"])
        limit = self.spec.get("revisionHistoryLimit", 10)
        surplus = revisions.surplus(known, live, limit)
        await revisions.forget(self.context, CONTROLLER_REVISIONS, surplus)

    # -- pods that have ended ------------------------------------------------------------------

    def _backoff_key(self, node: str) -> tuple[str, ...]:
        # With the generation, so that a new template does not inherit the delays of the old one.
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

    def _seconds_to_available(self, pod: DaemonPod) -> float | None:
        return pod.seconds_to_available(self.spec.get("minReadySeconds", 0), self.now_s)

    def _next_look(self, seen: bool) -> float | None:
        """When the next pod becomes available by time alone, or a failed pod may be replaced."""
        waits = [self._seconds_to_available(pod) for pod in self.found.values()]
        waits += [self._waits(f.node) for f in self.found.values() if f.phase == "Failed"]
        if not seen:
            waits.append(_LATE_S)
        return min(filter(None, waits), default=None)
