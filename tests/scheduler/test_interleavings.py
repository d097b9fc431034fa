"""Watch events, Bindings, lost answers, restarts, deletions and node changes in any order:
no card is overcommitted, acknowledged Bindings stay, and every pod that fits is bound at last."""

import asyncio
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.engine.decide import Placement, decide
from gpupool.scheduler.ledger import Knowledge
from gpupool.scheduler.queue import State
from gpupool.scheduler.run import Scheduler
from tests.scheduler.model_api import UNITS, Fate, ModelApi, started

NODES = ("m", "n")
ACTIVE = State.ACTIVE
Action = tuple[str, int]


class World:
    def __init__(self) -> None:
        self.api = ModelApi()
        self.now_s = 0.0
        self.api.set_node("m", ill=False)
        self._tasks: set[asyncio.Task[None]] = set()
        self.scheduler = self._started()

    def _started(self) -> Scheduler:
        return started(self.api, lambda: self.now_s)

    def tell(self) -> None:
        if self.api.news:
            resource, old, new = self.api.news.popleft()
            state = self.scheduler.state
            (state.pod_changed if resource == "pods" else state.node_changed)(old, new)

    def schedule(self) -> None:
        uid = self.scheduler._next(self.now_s)
        pod = self.scheduler.state.pending.get(uid) if uid else None
        for write in self.scheduler._cycle.try_pod(pod) if pod else ():
            task = asyncio.ensure_future(write())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def settle(self, which: int, fate: Fate) -> None:
        if self.api.requests:
            self.api.settle(self.api.requests[which % len(self.api.requests)], fate)

    async def restart(self) -> None:
        """Requests of the old scheduler cannot happen any more: Lease and fencing prevent it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.api.requests.clear()
        self.scheduler = self._started()

    def change_pods(self, verb: str, which: int) -> None:
        names = sorted(self.api.pods)
        if verb == "add":
            self.api.add_pod(f"p{len(names)}", 1 + which % UNITS, priority=0 if which < 6 else 10)
        elif names and verb == "delete":
            self.api.delete_pod(names[which % len(names)])
        elif names and self.api.pods[names[which % len(names)]]["spec"].get("nodeName"):
            self.api.finish_pod(names[which % len(names)])

    def change_nodes(self, which: int) -> None:
        name = NODES[which % 2]
        if name in self.api.nodes and which % 4 == 3:
            self.api.remove_node(name)
        else:
            self.api.set_node(name, ill=which % 3 == 1)

    async def act(self, action: Action) -> None:
        verb, which = action
        steps: dict[str, Callable[[], None]] = {
            "tell": self.tell,
            "schedule": self.schedule,
            "ok": lambda: self.settle(which, Fate.OK),
            "lost request": lambda: self.settle(which, Fate.LOST_REQUEST),
            "lost answer": lambda: self.settle(which, Fate.LOST_ANSWER),
            "busy": lambda: self.settle(which, Fate.BUSY),
            "node": lambda: self.change_nodes(which),
        }
        if verb == "restart":
            await self.restart()
        elif verb == "time":
            self.now_s += 2.0**which
        elif verb in steps:
            steps[verb]()
        else:
            self.change_pods(verb, which)
        for _ in range(4):  # let tasks that got an answer continue
            await asyncio.sleep(0)

    async def come_to_rest(self) -> None:
        for _ in range(12):
            while self.api.news or self.api.requests or self.scheduler.state.queue.counts()[ACTIVE]:
                for verb in ("tell", "schedule", "ok"):
                    await self.act((verb, 0))
            self.now_s += 60.0
            await self.act(("schedule", 0))
        assert not self.api.news
        assert not self.api.requests

    def check(self) -> None:
        over = {uuid: held for uuid, held in self.api.units_by_card().items() if held > UNITS}
        assert not over, over


VERBS = ("tell", "schedule", "ok")
FAULTS = ("lost request", "lost answer", "busy", "restart", "time")
ACTIONS = st.tuples(
    st.sampled_from(("add", *VERBS, *VERBS, "add", "delete", "finish", "node", *FAULTS)),
    st.integers(0, 7),
)


async def played(actions: list[Action]) -> None:
    world = World()
    acknowledged: dict[str, tuple[str, str]] = {}
    for action in actions:
        await world.act(action)
        world.check()
        held = world.api.placements()
        assert all(held[uid] == place for uid, place in acknowledged.items() if uid in held)
        acknowledged |= held
    await world.come_to_rest()
    world.check()
    state = world.scheduler.state
    places = dict(state.ledger.assignments())
    assert {place.knowledge for place in places.values()} <= {Knowledge.SEEN}
    assert set(places) == set(world.api.placements())
    for pod in state.pending.values():
        assert not isinstance(decide(state.cluster, pod.request, state.policy), Placement), (
            pod.shown
        )
    await world.restart()
    assert dict(world.scheduler.state.ledger.assignments()) == places


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=40))
def test_in_any_order_of_steps_no_card_is_overcommitted_and_no_pod_is_lost(
    actions: list[Action],
) -> None:
    asyncio.run(played(actions))
