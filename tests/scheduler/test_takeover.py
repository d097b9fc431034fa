"""Bindings that an earlier leader has sent are refused, however late they arrive."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import orjson
import pytest

from gpupool.contract.names import ANNOTATION_TERM
from gpupool.scheduler import takeover
from gpupool.scheduler.takeover import void_earlier_bindings
from kubeclient.client import Headers, Kube, Query, Transport
from kubeclient.errors import NoAnswer
from kubeclient.lease import Term
from kubeclient.resources import EVENTS, PODS
from tests.scheduler.unreliable import Fault, unreliable
from tests.scheduler.world import (
    CARD_UNITS,
    NAMES,
    add_node,
    add_pods,
    assert_no_card_over,
    bound,
    elected,
    gpu_pod,
    units_by_card,
    world,
)


class Slow:
    """A transport that delays Bindings, and loses everything else once it is `broken`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.broken = False
        self.lying: list[asyncio.Future[tuple[int, bytes]]] = []
        self.arrive = asyncio.Event()

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        async def later() -> tuple[int, bytes]:
            await self.arrive.wait()
            return await self._transport.call(method, path, query=query, headers=headers, body=body)

        if path.endswith("/binding"):
            self.lying.append(asyncio.ensure_future(later()))
            await asyncio.Event().wait()
        if self.broken:
            raise NoAnswer("broken")
        return await self._transport.call(method, path, query=query, headers=headers, body=body)

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(path, query=query, headers=headers)


async def test_bindings_of_a_leader_that_was_cut_off_are_refused_when_they_arrive(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "n", 8)
        way = Slow(kube._transport)
        async with elected(Kube(way), "one", valid_s=1.0):
            await add_pods(kube, *(gpu_pod(f"a{i}", units=CARD_UNITS) for i in range(8)))
            async with asyncio.timeout(60):
                while len(way.lying) < 8:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            way.broken = True
            before_them = "system-cluster-critical"
            for i in range(8):
                pod = gpu_pod(f"b{i}", units=CARD_UNITS, priorityClassName=before_them)
                await add_pods(kube, pod)
            async with elected(kube, "two", valid_s=1.0):
                await bound(kube, 1, 60)
                way.arrive.set()
                codes = [code for code, _ in await asyncio.gather(*way.lying)]
                pods = await bound(kube, 8, 60)
        assert codes == [409] * 8
        assert len(pods) == 8
        assert_no_card_over(pods)
        assert sum(units_by_card(pods).values()) == 8 * CARD_UNITS


async def test_only_our_pending_pods_are_marked_after_a_failover(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_pods(
            kube,
            gpu_pod("ours"),
            gpu_pod("theirs", schedulerName="theirs"),
            gpu_pod("before", schedulerName="before"),
            gpu_pod("asks-an-extender", units=1, schedulerName="theirs"),
        )
        term = Term("t", NAMES, inherits=True, served_before=frozenset({"before"}))
        await void_earlier_bindings(kube, term)
        marks = {
            pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(ANNOTATION_TERM)
            for pod in (await kube.list(PODS)).items
        }
        assert marks == {"ours": "t", "theirs": None, "before": "t", "asks-an-extender": "t"}


async def test_no_pod_is_marked_after_a_clean_handover(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_pods(kube, gpu_pod("p"))
        await void_earlier_bindings(kube, Term("t", NAMES))
        assert "annotations" not in (await kube.get(PODS, "p", "default"))["metadata"]


async def test_marking_retries_until_every_pod_is_marked(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_pods(kube, gpu_pod("p"))
        way = Slow(kube._transport)
        way.broken = True
        marking = asyncio.create_task(
            void_earlier_bindings(Kube(way), Term("t", NAMES, inherits=True))
        )
        await asyncio.sleep(0)
        way.broken = False
        await asyncio.wait_for(marking, 60)
        made = await kube.get(PODS, "p", "default")
        assert made["metadata"]["annotations"] == {ANNOTATION_TERM: "t"}


async def test_a_pod_whose_mark_is_refused_is_marked_again_and_a_deleted_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "_PAUSE_S", 0.0)
    async with world(tmp_path) as kube:
        await add_pods(kube, gpu_pod("deleted"), gpu_pod("p"))
        listed = (await kube.list(PODS)).items
        await kube.delete(PODS, "deleted", "default", options={"gracePeriodSeconds": 0})
        way = unreliable(kube)
        faults = [Fault.BUSY, Fault.LOST_REQUEST]
        way.choose = lambda _method, path: (
            faults.pop() if path.endswith("/p/status") and faults else Fault.NONE
        )
        for pod in listed:
            assert await takeover._mark(way.kube, pod, "t", lambda: False)
        assert not faults
        [left] = (await kube.list(PODS)).items
        assert left["metadata"]["annotations"] == {ANNOTATION_TERM: "t"}


class Protected:
    """A transport to a server that does not let the status of one pod be written."""

    def __init__(self, kube: Kube, name: str, answer: tuple[int, str] | None) -> None:
        self._transport = kube._transport
        self._path = f"/{name}/status"
        self._answer = answer  # code and reason; None: no answer
        self.tries = 0

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        if method == "PATCH" and path.endswith(self._path):
            self.tries += 1
            if self._answer is None:
                raise NoAnswer("the webhook hangs")
            code, reason = self._answer
            return code, orjson.dumps({"kind": "Status", "code": code, "reason": reason})
        return await self._transport.call(method, path, query=query, headers=headers, body=body)

    def stream(self, path: str, *, query: Query, headers: Headers) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(path, query=query, headers=headers)


class Clock:
    """Passes ten seconds whenever somebody looks."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        self.now_s += 10.0
        return self.now_s


INHERITED = Term("t", NAMES, inherits=True)
FORBIDDEN, INVALID, FAILED = (403, "Forbidden"), (422, "Invalid"), (500, "InternalError")


@pytest.mark.parametrize("answer", [FORBIDDEN, INVALID, FAILED, None])
async def test_a_gpu_pod_that_nobody_can_write_to_holds_scheduling_up_for_90_seconds_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str] | None
) -> None:
    monkeypatch.setattr(takeover, "_PAUSE_S", 0.0)
    async with world(tmp_path) as kube:
        await add_pods(kube, gpu_pod("protected", units=1), gpu_pod("p", units=1))
        way, clock = Protected(kube, "protected", answer), Clock()
        began_s = clock.now_s
        unmarked = await asyncio.wait_for(void_earlier_bindings(Kube(way), INHERITED, clock), 60)
        assert [pod["metadata"]["name"] for pod in unmarked] == ["protected"]
        # Until then a Binding of the last leader may arrive: its cards must not be given out.
        assert clock.now_s - began_s > 90.0
        assert way.tries > 1
        made = await kube.get(PODS, "p", "default")
        assert made["metadata"]["annotations"] == {ANNOTATION_TERM: "t"}


async def test_a_pod_without_cards_whose_mark_is_refused_holds_nothing_up(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_pods(kube, gpu_pod("protected"))
        way = Protected(kube, "protected", FORBIDDEN)
        unmarked = await void_earlier_bindings(Kube(way), INHERITED)
        assert [pod["metadata"]["name"] for pod in unmarked] == ["protected"]
        assert way.tries == 1


async def test_a_pod_that_others_have_written_to_since_needs_no_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "_PAUSE_S", 0.0)
    async with world(tmp_path) as kube:
        await add_pods(kube, gpu_pod("protected", units=1))
        way = Protected(kube, "protected", FORBIDDEN)
        marking = asyncio.create_task(void_earlier_bindings(Kube(way), INHERITED, lambda: 0.0))
        async with asyncio.timeout(60):
            while not way.tries:  # noqa: ASYNC110
                await asyncio.sleep(0)
        await kube.patch(PODS.path("default", "protected"), {"metadata": {"labels": {"a": "b"}}})
        assert await asyncio.wait_for(marking, 60) == []


async def test_nothing_is_decided_while_the_server_cannot_be_asked_about_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "_PAUSE_S", 0.0)
    async with world(tmp_path) as kube:
        await add_pods(kube, gpu_pod("p", units=1))
        way = unreliable(kube)
        lost = [Fault.LOST_REQUEST] * 200  # both the writes and the reads, for long
        way.choose = lambda _method, path: lost.pop() if "/p" in path and lost else Fault.NONE
        assert await void_earlier_bindings(way.kube, INHERITED, Clock()) == []
        assert not lost


async def test_a_leader_schedules_a_pod_that_it_could_not_mark_and_says_so_on_the_pod(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "n", 1)
        way = Slow(kube._transport)
        async with elected(Kube(way), "one", valid_s=1.0):
            await add_pods(kube, gpu_pod("protected"))
            async with asyncio.timeout(60):
                while not way.lying:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            way.broken = True
            async with elected(Kube(Protected(kube, "protected", FORBIDDEN)), "two", valid_s=1.0):
                await bound(kube, 1, 60)
                async with asyncio.timeout(60):
                    while not (said := await _events_about(kube, "protected")):  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                way.arrive.set()
                codes = [code for code, _ in await asyncio.gather(*way.lying)]
        assert codes == [409]
        assert "could not be written to" in said[0]


async def _events_about(kube: Kube, name: str) -> list[str]:
    return [
        each["message"]
        for each in (await kube.list(EVENTS, "default")).items
        if (each["involvedObject"]["kind"], each["involvedObject"]["name"]) == ("Pod", name)
        and each["reason"] == "NotFenced"
    ]
