"""`gpupool defrag --apply` with an API server whose answers fail or get lost, at every request."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest

from gpupool.cli import defrag_cordons, defrag_nominations, defrag_steps
from gpupool.cli.defrag_steps import Done, carried_out
from gpupool.cli.progress import Progress
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.card_orders import orders_of
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import (
    ANNOTATION_CORDONED_CARDS,
    ANNOTATION_INVENTORY,
    ANNOTATION_PLANNED_MOVES,
    RESOURCE_GPU,
)
from gpupool.contract.planned_moves import PlannedMove, planned_moves_of
from gpupool.contract.pods import pod_request
from gpupool.core.gpu import (
    Allocation,
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    Inventory,
    Isolation,
)
from gpupool.engine.decide import Placement
from gpupool.engine.defrag import Move, Plan
from kubeclient.client import Headers, Kube, Query
from kubeclient.errors import NoAnswer
from kubeclient.objects import Obj

WITH_A_CARD = {
    "name": "c",
    "resources": {"limits": {RESOURCE_GPU: "1"}, "requests": {RESOURCE_GPU: "1"}},
}
FAULTS = ("lost request", "lost answer", "500", "409", "403", "429")
_CODES = {"500": "InternalError", "409": "Conflict", "403": "Forbidden", "429": "TooManyRequests"}


def card(node: str) -> Allocation:
    share = CardShare(f"GPU-{node}", 0, 16, 16384, 16)
    return Allocation((ContainerGpus("c", (share,), Isolation.WHOLE),))


@dataclass
class Api:
    """Nodes of one card, an agent that obeys at once, a controller and a scheduler."""

    fault: str = ""
    at: int = -1  # the request that the fault meets
    goes_to: str = ""  # where successors go; empty: where the plan wants them
    on_evict: Callable[[], None] = lambda: None
    lost: set[str] = field(default_factory=set)  # nodes whose cards do not answer
    nodes: dict[str, Obj] = field(default_factory=dict)
    pods: dict[str, Obj] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    requests: int = 0
    version: int = 0

    def add_node(self, name: str) -> None:
        offered = {"pods": "110", RESOURCE_GPU: "1"}
        metadata = {"name": name, "annotations": {}}
        self.nodes[name] = {"metadata": metadata, "status": {"allocatable": offered}}
        self._agent(name)

    def _agent(self, name: str) -> None:
        metadata = self.nodes[name]["metadata"]
        ordered = orders_of(metadata["annotations"].get(ANNOTATION_CORDONED_CARDS) or "")
        health = CardHealth.CORDONED if ordered else CardHealth.HEALTHY
        cards = () if name in self.lost else (Card(0, f"GPU-{name}", "V100", 16384, health),)
        metadata["annotations"][ANNOTATION_INVENTORY] = inventory_text(Inventory(cards))
        self.version += 1
        metadata["resourceVersion"] = str(self.version)

    def cordon(self, name: str, reason: str) -> None:
        text = orjson.dumps({f"GPU-{name}": reason}).decode()
        self.nodes[name]["metadata"]["annotations"][ANNOTATION_CORDONED_CARDS] = text
        self._agent(name)

    def add_pod(self, name: str, node: str) -> Obj:
        owner = {"kind": "ReplicaSet", "uid": f"of-{name.partition('.')[0]}", "controller": True}
        self.pods[name] = {
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"uid-{name}",
                "ownerReferences": [owner],
                "annotations": allocation_annotations(card(node), now_ns=0),
            },
            "spec": {"containers": [WITH_A_CARD], "nodeName": node},
        }
        return self.pods[name]

    @property
    def cordoned(self) -> set[str]:
        found = (n["metadata"]["annotations"] for n in self.nodes.values())
        texts = [notes.get(ANNOTATION_CORDONED_CARDS) for notes in found]
        return {uuid for text in texts if text for uuid in orders_of(text)}

    @property
    def planned(self) -> dict[str, tuple[PlannedMove, ...]]:
        """By node."""
        notes = ((name, node["metadata"]["annotations"]) for name, node in self.nodes.items())
        texts = {name: each.get(ANNOTATION_PLANNED_MOVES) for name, each in notes}
        return {name: planned_moves_of(text) for name, text in texts.items() if text}

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        await asyncio.sleep(0)
        number, self.requests = self.requests, self.requests + 1
        fault = self.fault if number == self.at else ""
        if fault == "lost request":
            raise NoAnswer("lost")
        if fault in _CODES:
            return _status(int(fault), _CODES[fault])
        answer = self._do(method, path.split("/"), query, orjson.loads(body) if body else {})
        if fault == "lost answer":
            raise NoAnswer("lost")
        return answer

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        raise AssertionError(path)

    def _do(self, method: str, parts: list[str], query: Query, body: Any) -> tuple[int, bytes]:
        if parts[3] == "nodes":
            node = self.nodes.get(parts[4])
            if node is None:
                return _status(404, "NotFound")
            if method == "PATCH":
                if body["metadata"]["resourceVersion"] != node["metadata"]["resourceVersion"]:
                    return _status(409, "Conflict")
                node["metadata"]["annotations"] |= body["metadata"]["annotations"]
                self._agent(parts[4])
            return 200, orjson.dumps(node)
        if method == "GET" and len(parts) in (4, 6):  # of a node, or of a namespace
            chosen = (query.get("fieldSelector") or "").removeprefix("spec.nodeName=")
            items = [pod for pod in self.pods.values() if chosen in ("", pod["spec"]["nodeName"])]
            return 200, orjson.dumps({"metadata": {"resourceVersion": "1"}, "items": items})
        pod = self.pods.get(parts[6])
        if pod is None:
            return _status(404, "NotFound")
        if method == "POST":
            self._evict(pod)
        return 200, orjson.dumps(pod)

    def _evict(self, pod: Obj) -> None:
        name = pod["metadata"]["name"]
        self.evicted.append(name)
        del self.pods[name]
        self.on_evict()
        self.add_pod(f"{name}.new", self.goes_to or f"to-{name}")


def _status(code: int, reason: str) -> tuple[int, bytes]:
    return code, orjson.dumps({"kind": "Status", "code": code, "reason": reason, "message": reason})


def made(**of_api: Any) -> tuple[Api, Plan]:
    """Two pods leave their nodes, each for another one."""
    api = Api(**of_api)
    moves = []
    for name in ("p0", "p1"):
        for node in (name, f"to-{name}"):
            api.add_node(node)
        request = replace(pod_request(api.add_pod(name, name)), node_name="")
        moves.append(Move(request, name, Placement(f"to-{name}", card(f"to-{name}"))))
    api.add_node("elsewhere")
    placements = tuple(Placement(name, card(name)) for name in ("p0", "p1"))
    return api, Plan(placements, tuple(moves))


async def carry(api: Api, plan: Plan) -> Done:
    running = {f"uid-{move.pod.name}" for move in plan.moves}
    return await carried_out(Kube(api), plan, running, Progress("Moving pods", 2))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_waits(monkeypatch)


def shorten_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the limits, which a busy machine would reach."""
    monkeypatch.setattr(defrag_steps, "_PAUSE_S", 0.001)
    monkeypatch.setattr(defrag_cordons, "_PAUSE_S", 0.001)
    monkeypatch.setattr(defrag_nominations, "_PAUSE_S", 0.001)
    monkeypatch.setattr(defrag_nominations, "_HEARD_S", 0.0)


async def test_all_goes_well_and_no_cordon_is_left() -> None:
    api, plan = made()
    done = await carry(api, plan)
    assert (done.words, done.is_complete) == ("2 of 2 pods moved.", True)
    assert not api.cordoned


@pytest.mark.parametrize("fault", FAULTS)
async def test_whatever_fails_no_cordon_is_left_and_what_is_said_is_true(fault: str) -> None:
    api, plan = made()
    await carry(api, plan)
    for at in range(api.requests):
        trying, plan = made(fault=fault, at=at)
        done = await carry(trying, plan)
        assert not trying.cordoned, at
        assert not trying.planned, at
        assert not done.left
        said = f"{len(trying.evicted)} {'was' if len(trying.evicted) == 1 else 'were'} evicted"
        assert done.moved == 2 or f"{done.moved} of 2 pods moved, {said}." in done.words, at
        # One more may be on its way, and then it is named.
        on_its_way = trying.evicted[done.moved :]
        assert len(on_its_way) <= 1, (at, done)
        assert all(f"team/{name}" in done.words for name in on_its_way), (at, done)
        assert done.is_complete == (done.moved == 2)


@pytest.mark.parametrize("fault", ["lost answer", "500", "429"])
async def test_who_is_evicted_is_seen_to_though_answers_are_lost(fault: str) -> None:
    for at in range(40):
        api, plan = made(fault=fault, at=at)
        done = await carry(api, plan)
        assert len(api.evicted) == done.moved, (at, done)


async def test_a_server_that_is_down_after_an_eviction_is_waited_for() -> None:
    api, plan = made()
    call, lost = api.call, iter(range(6))

    async def down(method: str, path: str, **rest: Any) -> tuple[int, bytes]:
        answer = await call(method, path, **rest)
        if api.evicted and next(lost, None) is not None:  # the answer to the eviction, too
            assert api.cordoned
            raise NoAnswer("down")
        return answer

    api.call = down  # type: ignore[method-assign]
    done = await carry(api, plan)
    assert done.words == "2 of 2 pods moved."
    assert api.evicted == ["p0", "p1"]


async def test_a_card_that_somebody_has_cordoned_meanwhile_stops_the_plan_and_stays_so() -> None:
    api, plan = made()
    api.cordon("p1", "gpupool defrag makes room here (another)")
    done = await carry(api, plan)
    assert api.cordoned == {"GPU-p1"}
    assert not api.evicted
    assert "is cordoned meanwhile: gpupool defrag makes room here (another)" in done.words


async def test_cards_that_stay_cordoned_are_named_with_the_command_that_helps() -> None:
    api, plan = made(goes_to="elsewhere")

    def fail() -> None:
        api.on_evict = lambda: None
        call = api.call

        async def broken(method: str, path: str, **rest: Any) -> tuple[int, bytes]:
            if method == "PATCH":
                raise NoAnswer("down")
            return await call(method, path, **rest)

        api.call = broken  # type: ignore[method-assign]

    api.on_evict = fail
    done = await carry(api, plan)
    assert api.cordoned == {"GPU-p0", "GPU-p1"}
    assert "went to node elsewhere" in done.words
    assert "gpupool gpu uncordon p0 GPU-p0; gpupool gpu uncordon p1 GPU-p1" in done.words


async def test_an_interrupted_plan_ends_its_cordons_and_says_where_it_was() -> None:
    api, plan = made()
    work = asyncio.ensure_future(carry(api, plan))
    api.on_evict = work.cancel  # type: ignore[assignment]
    done = await work
    assert not api.cordoned
    assert done.words.startswith("0 of 2 pods moved, 1 was evicted. Stopped: it was interrupted")
    assert "pod team/p0" in done.words


async def test_a_pod_that_has_lost_its_controller_stays() -> None:
    api, plan = made()
    del api.pods["p0"]["metadata"]["ownerReferences"]
    done = await carry(api, plan)
    assert not api.evicted
    assert "pod team/p0 has no controller any more" in done.words


@pytest.mark.parametrize("change", ["Succeeded", "Failed", "terminating"])
async def test_a_pod_that_ends_by_itself_is_not_waited_for(change: str) -> None:
    api, plan = made()
    if change == "terminating":
        api.pods["p0"]["metadata"]["deletionTimestamp"] = "2026-11-19T00:00:00Z"
    else:
        api.pods["p0"]["status"] = {"phase": change}
    done = await carry(api, plan)
    assert not api.evicted
    assert "pod team/p0 ends by itself now" in done.words


async def test_however_often_and_whenever_it_is_interrupted_no_cordon_is_left() -> None:
    api, plan = made()
    await carry(api, plan)
    for at in range(api.requests + 1):
        trying, plan = made()
        work = asyncio.ensure_future(carry(trying, plan))
        await asyncio.sleep(0)
        while not work.done():  # a terminal that is closed, and a session that ends, send several
            if trying.requests >= at:
                work.cancel()
            await asyncio.sleep(0)
        done = await work
        assert not trying.cordoned, (at, done)
        assert not trying.planned, (at, done)
        assert done.is_complete == (done.moved == 2), (at, done)


@pytest.mark.parametrize("gone", ["inventory", "node"])
async def test_a_cordon_ends_also_where_the_card_is_gone(gone: str) -> None:
    api, plan = made(goes_to="elsewhere")

    def lose() -> None:
        if gone == "node":
            del api.nodes["p0"]
        else:
            api.lost.add("p0")
            api._agent("p0")

    api.on_evict = lose
    done = await carry(api, plan)
    assert not api.cordoned
    assert not done.left


async def test_a_server_that_hangs_does_not_hold_the_end_up_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(defrag_steps, "_LONGEST_S", 0.2)
    monkeypatch.setattr(defrag_cordons, "_LONGEST_S", 0.05)
    monkeypatch.setattr(defrag_nominations, "_LONGEST_END_S", 0.05)
    api, plan = made(goes_to="elsewhere")
    call = api.call

    async def hang(method: str, path: str, **rest: Any) -> tuple[int, bytes]:
        if method == "PATCH" and api.evicted:
            await asyncio.sleep(3600)
        return await call(method, path, **rest)

    api.call = hang  # type: ignore[method-assign]
    done = await carry(api, plan)
    assert [left.node for left in done.left] == ["p0", "p1"]


@pytest.mark.parametrize(("phase", "moved"), [("Running", 0), ("Succeeded", 2)])
async def test_nobody_is_evicted_for_room_that_somebody_took_before_the_cordon(
    phase: str, moved: int
) -> None:
    api, plan = made()
    api.add_pod("late", "p1")["status"] = {"phase": phase}
    done = await carry(api, plan)
    assert (done.moved, len(api.evicted)) == (moved, moved)
    assert ("pod team/late came to node p1, card GPU-p1 meanwhile" in done.words) == (not moved)
    assert not api.cordoned
