"""Resize requests, writes, lost and late answers, agents, kubelets and restarts in any order: no
card is overcommitted, in the ledger or on the server, and no program has more than its share."""

import asyncio
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import (
    ANNOTATION_RESIZE,
    ANNOTATION_SHRINKING,
    ANNOTATION_SHRINKS,
    GROUP_LIMITS,
)
from gpupool.contract.resize import ShrinkReport, reports_text
from gpupool.core.gpu import CardShare
from gpupool.scheduler.run import Scheduler
from kubeclient.objects import Obj
from tests.scheduler.model_api import UNITS, Fate, ModelApi, started

NODE, LIMITS = "m", f"{GROUP_LIMITS}/c"
Action = tuple[str, int]


class World:
    def __init__(self) -> None:
        self.api = ModelApi()
        self.now_s = 0.0
        self.api.set_node(NODE, ill=False)
        self.files: dict[str, str] = {}  # by uid: the limit file that the kubelet has written
        self.used: Counter[str] = Counter()  # by uid: MiB
        self.seen_by_agent: dict[str, Obj] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.scheduler = self._started()

    def _started(self) -> Scheduler:
        made = started(self.api, lambda: self.now_s)
        made._resizer.begin()
        return made

    def bound(self) -> list[Obj]:
        names = sorted(self.api.pods)
        return [pod for name in names if (pod := self.api.pods[name])["spec"].get("nodeName")]

    def share(self, pod: Obj) -> CardShare:
        return pod_allocation(pod).containers[0].shares[0]

    # -- several steps at once -------------------------------------------------------------

    def work(self, which: int) -> None:
        while self.api.news:
            self.tell(0)
        for _ in range(3):
            self.schedule(0)

    def node(self, which: int) -> None:
        for number in range(len(self.bound())):
            self.kubelet(number)
        self.agent_sees(0)
        self.agent(0)

    def answers(self, which: int) -> None:
        for _ in list(self.api.requests):
            self.settle(0, Fate.OK)

    # -- single steps ----------------------------------------------------------------------

    def add(self, which: int) -> None:
        self.api.add_pod(f"p{len(self.api.pods)}", 1 + which % UNITS, priority=0)

    def wish(self, which: int) -> None:
        pods = self.bound()
        if pods:
            text = None if which == 7 else str(which % (UNITS + 2))
            name = pods[which % len(pods)]["metadata"]["name"]
            self.api.annotate("pods", name, {ANNOTATION_RESIZE: text})

    def kubelet(self, which: int) -> None:
        """Writes the limit file of a pod, sooner or later."""
        pods = self.bound()
        if pods:
            pod = pods[which % len(pods)]
            self.files[pod["metadata"]["uid"]] = pod["metadata"]["annotations"][LIMITS]

    def program(self, which: int) -> None:
        """Takes as much as it gets, or gives something back."""
        pods = self.bound()
        if not pods:
            return
        uid = pods[which % len(pods)]["metadata"]["uid"]
        limit = int(self.files.get(uid, "card 0 0").split()[1])
        self.used[uid] = self.used[uid] // 2 if which % 3 == 0 else max(self.used[uid], limit)

    def agent_sees(self, which: int) -> None:
        self.seen_by_agent = {pod["metadata"]["uid"]: pod for pod in self.bound()}

    def agent(self, which: int) -> None:
        reports = {}
        for uid, pod in self.seen_by_agent.items():
            annotations = pod["metadata"]["annotations"]
            token = annotations.get(ANNOTATION_SHRINKING)
            if token and self.files.get(uid) == annotations[LIMITS]:
                used = {"c": {self.share(pod).uuid: self.used[uid]}}
                reports[uid] = ShrinkReport(token, used)
        self.api.annotate("nodes", NODE, {ANNOTATION_SHRINKS: reports_text(reports)})

    def tell(self, which: int) -> None:
        if self.api.news:
            resource, old, new = self.api.news.popleft()
            state = self.scheduler.state
            (state.pod_changed if resource == "pods" else state.node_changed)(old, new)

    def schedule(self, which: int) -> None:
        writes = self.scheduler._resizer.due_writes(self.now_s)
        uid = self.scheduler._next(self.now_s)
        pod = self.scheduler.state.pending.get(uid) if uid else None
        for write in [*writes, *(self.scheduler._cycle.try_pod(pod) if pod else ())]:
            task = asyncio.ensure_future(write())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def settle(self, which: int, fate: Fate) -> None:
        if self.api.requests:
            self.api.settle(self.api.requests[which % len(self.api.requests)], fate)

    async def restart(self) -> None:
        """Bindings of the old scheduler cannot happen any more: the Lease and fencing see to that.
        Changes of shares may still happen: they are safe without it.
        """
        late = [request for request in self.api.requests if request.method == "PATCH"]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.api.requests[:] = late
        self.scheduler = self._started()

    async def act(self, action: Action) -> None:
        verb, which = action
        fates = {
            "ok": Fate.OK,
            "lost request": Fate.LOST_REQUEST,
            "lost answer": Fate.LOST_ANSWER,
            "busy": Fate.BUSY,
        }
        if verb == "restart":
            await self.restart()
        elif verb == "time":
            self.now_s += 2.0**which
        elif verb in fates:
            self.settle(which, fates[verb])
        else:
            getattr(self, verb.replace(" ", "_"))(which)
        for _ in range(4):  # let tasks that got an answer continue
            await asyncio.sleep(0)

    async def come_to_rest(self) -> None:
        for _ in range(8):
            await self.act(("node", 0))
            self.now_s += 60.0
            await self.act(("schedule", 0))
            while self.api.news or self.api.requests:
                for verb in ("tell", "schedule", "ok"):
                    await self.act((verb, 0))
                self.check()
        assert not self.api.requests

    def check(self) -> None:
        held, used = self.api.units_by_card(), Counter[str]()
        assert all(units <= UNITS for units in held.values()), held
        for pod in self.bound():
            share, uid = self.share(pod), pod["metadata"]["uid"]
            used[share.uuid] += self.used[uid]
            assert self.used[uid] <= share.memory_mib
            assert int(pod["metadata"]["annotations"][LIMITS].split()[1]) <= share.memory_mib
        assert all(mib <= UNITS * 1024 for mib in used.values()), used


VERBS = ("work", "answers", "node", "program", "wish", "wish", "kubelet", "agent sees", "agent")
SMALL = ("tell", "schedule", "ok")
FAULTS = ("lost request", "lost answer", "busy", "restart", "time", "add")
ACTIONS = st.tuples(st.sampled_from((*VERBS, *VERBS, *SMALL, *FAULTS)), st.integers(0, 7))


async def played(actions: list[Action]) -> None:
    world = World()
    for units in (0, 1):
        world.add(units)
    for verb in ("work", "answers", "work", "node"):
        await world.act((verb, 0))
    for action in actions:
        await world.act(action)
        world.check()
    await world.come_to_rest()
    for pod in world.bound():
        annotations = pod["metadata"]["annotations"]
        assert ANNOTATION_RESIZE not in annotations
        assert ANNOTATION_SHRINKING not in annotations
        place = world.scheduler.state.ledger.assignment(pod["metadata"]["uid"])
        assert place is not None
        assert place.allocation == pod_allocation(pod)


# The report on an earlier lowered limit still exists when the same share shrinks again.
STALE_REPORT = [
    *[("wish", 1), ("work", 0), ("answers", 0), ("work", 0), ("node", 0), ("work", 0)],
    *[("answers", 0), ("wish", 3), ("work", 0), ("answers", 0), ("kubelet", 1), ("program", 1)],
    *[("wish", 1), ("work", 0), ("answers", 0), ("work", 0), ("answers", 0)],
]
# The old scheduler granted one request, and its write arrives late; another request is pending.
LATE_GRANT = [
    ("wish", 3),
    ("work", 0),
    ("wish", 2),
    ("restart", 0),
    ("schedule", 0),
    ("answers", 0),
]


@settings(max_examples=300, deadline=None)
@example(STALE_REPORT)
@example(LATE_GRANT)
@given(st.lists(ACTIONS, max_size=60))
def test_in_any_order_of_steps_no_card_is_overcommitted_and_no_limit_exceeds_its_share(
    actions: list[Action],
) -> None:
    asyncio.run(played(actions))
