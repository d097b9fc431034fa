"""The extender over HTTP, called as kube-scheduler calls it, in both spellings of the keys."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpupool.contract.names import ANNOTATION_FREED
from gpupool.contract.pods import pod_request
from gpupool.health import Address
from gpupool.orders.shares import resize
from gpupool.scheduler.extender_program import ExtenderSettings, run_extender
from gpupool.scheduler.preemption import withdraw_nomination
from gpupool.scheduler.refused_pods import LEAST_SAMPLE
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from tests.scheduler.unreliable import Fault, unreliable
from tests.scheduler.world import (
    CARD_UNITS,
    POLICY,
    add_node,
    assert_no_card_over,
    bound,
    candidacy,
    elected,
    gpu_pod,
    world,
)

HALF = CARD_UNITS // 2


class Caller:
    """Calls the extender as kube-scheduler does."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def post(self, verb: str, body: object) -> Any:
        async with self._session.post(f"{self.url}/gpushare-scheduler/{verb}", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def get(self, path: str) -> Any:
        async with self._session.get(self.url + path) as answer:
            return await answer.json()

    async def status(self, path: str, body: bytes | None = None) -> int:
        method = "GET" if body is None else "POST"
        async with self._session.request(method, self.url + path, data=body) as answer:
            return answer.status

    async def filter(self, pod: Obj, *names: str) -> Any:
        return await self.post("filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})

    async def bind(self, pod: Obj, node: str) -> str:
        metadata = pod["metadata"]
        args = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": node,
        }
        return str((await self.post("bind", args))["Error"])


@contextlib.asynccontextmanager
async def extender(kube: Kube, most_nodes: int = 20) -> AsyncIterator[Caller]:
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    settings = ExtenderSettings(
        POLICY,
        Address("127.0.0.1", 0),
        candidacy("extender", goes_first=True),
        most_nodes=most_nodes,
    )
    task = asyncio.create_task(run_extender(kube, settings, port.set_result))
    try:
        async with aiohttp.ClientSession() as session:
            caller = Caller(session, f"http://127.0.0.1:{await port}")
            async with asyncio.timeout(60):
                while await caller.status("/readyz") != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            yield caller
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def waiting_pod(kube: Kube, name: str, **asked: Any) -> Obj:
    return await kube.create(PODS, gpu_pod(name, schedulerName="default-scheduler", **asked))


async def test_filter_returns_fitting_nodes_and_reasons_for_the_others(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        for name, count in (("a", 1), ("b", 2), ("c", 0)):
            await add_node(kube, name, count)
        async with extender(kube) as caller:
            pod = await waiting_pod(kube, "p", units=HALF)
            answer = await caller.filter(pod, "a", "b", "c", "unheard-of")
            assert answer["NodeNames"] == ["a", "b"]
            assert answer["Nodes"] is None
            assert answer["Error"] == ""
            refused = answer["FailedNodes"] | answer["FailedAndUnresolvableNodes"]
            assert set(refused) == {"c", "unheard-of"}
            assert "aliyun.com/gpu-mem" in refused["c"]


async def test_filter_returns_the_best_few_of_many_nodes(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        names = ["a", "b", "c", "d"]
        for name in names:
            await add_node(kube, name, 1)
        async with extender(kube, most_nodes=2) as caller:
            for name in ("b", "d"):  # the fuller cards are the better fit
                assert await caller.bind(await waiting_pod(kube, f"on-{name}", units=1), name) == ""
            answer = await caller.filter(await waiting_pod(kube, "p", units=1), *names)
            assert answer["NodeNames"] == ["b", "d"]
            # The others fit, too: no reason is told, so that preemption does not look at them.
            assert answer["FailedNodes"] == answer["FailedAndUnresolvableNodes"] == {}


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
        {"resourceClaims": [{"name": "r", "resourceClaimName": "device"}]},
    ],
    ids=["claim", "ephemeral claim", "device"],
)
async def test_filter_returns_all_nodes_where_kube_scheduler_still_has_to_judge(
    tmp_path: Path, spec: Obj
) -> None:
    async with world(tmp_path) as kube:
        for name in ("a", "b"):
            await add_node(kube, name, 1)
        async with extender(kube, most_nodes=1) as caller:
            pod = await waiting_pod(kube, "p", units=1)
            assert len((await caller.filter(pod, "a", "b"))["NodeNames"]) == 1
            pod["metadata"]["resourceVersion"] = "0"  # another state of the pod
            pod["spec"] |= spec
            assert (await caller.filter(pod, "a", "b"))["NodeNames"] == ["a", "b"]


async def test_messages_of_older_versions_with_node_objects_are_read(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 1)
        async with extender(kube) as caller:
            pod = await waiting_pod(kube, "p", units=1)
            nodes = {"items": [await kube.get(NODES, "a")]}
            answer = await caller.post("filter", {"pod": pod, "nodes": nodes, "nodenames": None})
            assert [node["metadata"]["name"] for node in answer["Nodes"]["items"]] == ["a"]
            assert answer["NodeNames"] is None


async def test_prioritize_scores_from_ten_down_to_zero(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        for name in ("a", "b"):
            await add_node(kube, name, 1)
        async with extender(kube) as caller:
            first = await waiting_pod(kube, "first", units=HALF)
            assert await caller.bind(first, "b") == ""
            pod = await waiting_pod(kube, "p", units=HALF)
            args = {"Pod": pod, "Nodes": None, "NodeNames": ["a", "b"]}
            scores = {each["Host"]: each["Score"] for each in await caller.post("prioritize", args)}
            assert scores == {"a": 5, "b": 10}  # the fuller card is the better fit


async def test_bind_writes_the_cards_with_the_binding(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 2)
        async with extender(kube) as caller:
            for number in range(5):
                pod = await waiting_pod(kube, f"p{number}", units=HALF)
                error = await caller.bind(pod, "a")
                assert (error == "") == (number < 4)
        assert error == "pod default/p4 no longer fits on node a"
        assert_no_card_over(await bound(kube, 4))


async def test_a_burst_of_cycles_gives_no_card_twice(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        names = [f"n{i}" for i in range(4)]
        for name in names:
            await add_node(kube, name, 2)
        async with extender(kube) as caller:

            async def cycle(number: int) -> None:
                pod = await waiting_pod(kube, f"p{number}", units=HALF)
                for _ in range(20):
                    fitting = (await caller.filter(pod, *names))["NodeNames"]
                    args = {"Pod": pod, "Nodes": None, "NodeNames": fitting}
                    scores = await caller.post("prioritize", args)
                    best = max(scores, key=lambda each: each["Score"], default=None)
                    if best is not None and not await caller.bind(pod, best["Host"]):
                        return

            await asyncio.gather(*(cycle(number) for number in range(16)))
        pods = await bound(kube, 16)
        assert_no_card_over(pods)


async def test_a_reservation_is_only_a_hint(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        for name in ("a", "b"):
            await add_node(kube, name, 1)
        async with extender(kube) as caller:
            first, second, third = [
                await waiting_pod(kube, name, units=CARD_UNITS) for name in ("p", "q", "r")
            ]
            both = {"Nodes": None, "NodeNames": ["a", "b"]}
            await caller.post("prioritize", {"Pod": first, **both})
            offered = (await caller.filter(second, "a", "b"))["NodeNames"]
            assert len(offered) == 1
            await caller.post("prioritize", {"Pod": second, **both})
            assert len((await caller.filter(third, "a", "b"))["NodeNames"]) == 2


async def test_a_new_pod_of_the_same_name_is_not_bound(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 1)
        async with extender(kube) as caller:
            pod = await waiting_pod(kube, "p", units=1)
            pod["metadata"]["uid"] = "another"
            assert await caller.bind(pod, "a") == "pod default/p is another one by now"


async def test_after_a_lost_answer_the_same_binding_is_sent_again(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        for name in ("a", "b"):
            await add_node(kube, name, 1)
        way = unreliable(kube)
        faults = [Fault.LOST_REQUEST]
        way.choose = lambda _method, path: (
            faults.pop() if path.endswith("/binding") and faults else Fault.NONE
        )
        async with extender(way.kube) as caller:
            pod = await waiting_pod(kube, "p", units=CARD_UNITS)
            assert "nobody knows" in await caller.bind(pod, "a")
            assert (await caller.filter(pod, "a", "b"))["NodeNames"] == ["a"]
            other = await waiting_pod(kube, "q", units=1)
            assert (await caller.filter(other, "a", "b"))["NodeNames"] == ["b"]
            assert await caller.bind(pod, "a") == ""


async def test_victims_that_free_the_wrong_cards_are_replaced(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 2)
        async with extender(kube) as caller:
            low = [await waiting_pod(kube, f"low{i}", units=HALF) for i in range(4)]
            for pod in low:
                assert await caller.bind(pod, "a") == ""
            by_card: dict[str, list[str]] = {}
            for pod in await bound(kube, 4):
                card = pod["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"]
                by_card.setdefault(card, []).append(pod["metadata"]["uid"])
            one_of_each = [uids[0] for uids in by_card.values()]
            high = await waiting_pod(kube, "high", units=CARD_UNITS)
            high["spec"]["priority"] = 100
            args = {
                "Pod": high,
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": uid} for uid in one_of_each]}},
            }
            answer = (await caller.post("preempt", args))["NodeNameToMetaVictims"]
            victims = [pod["UID"] for pod in answer["a"]["Pods"]]
            assert sorted(victims) in [sorted(uids) for uids in by_card.values()]


async def touched(kube: Kube, name: str) -> None:
    async with asyncio.timeout(60):
        while True:
            node = await kube.get(NODES, name)
            if ANNOTATION_FREED in node["metadata"]["annotations"]:
                return
            await asyncio.sleep(0.01)


async def test_a_node_is_touched_when_there_is_room_again(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 1)
        async with extender(kube) as caller:
            first = await waiting_pod(kube, "first", units=CARD_UNITS)
            assert await caller.bind(first, "a") == ""
            second = await waiting_pod(kube, "second", units=HALF)
            assert (await caller.filter(second, "a"))["NodeNames"] == []
            await kube.delete(PODS, "first", "default", options={"gracePeriodSeconds": 0})
            await touched(kube, "a")
            assert (await caller.filter(second, "a"))["NodeNames"] == ["a"]


async def test_a_pod_that_fits_only_outside_a_sample_is_nominated_there(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "far", 1)
        async with extender(kube) as caller:
            pod = await waiting_pod(kube, "p", units=HALF)
            sample = [f"other-{number}" for number in range(LEAST_SAMPLE)]
            assert (await caller.filter(pod, *sample))["NodeNames"] == []
            await touched(kube, "far")
            led = await kube.get(PODS, "p", "default")
            assert led["status"]["nominatedNodeName"] == "far"
            assert (await caller.filter(led, "far"))["NodeNames"] == ["far"]


@pytest.mark.parametrize("written", ["far", "new", ""])
async def test_a_nomination_that_somebody_else_wrote_is_not_taken_back(
    tmp_path: Path, written: str
) -> None:
    """An autoscaler writes the node that it makes for the pod. `far`: as the extender wrote it."""
    async with world(tmp_path) as kube:
        pod = await waiting_pod(kube, "p", units=HALF)
        path = PODS.path("default", "p", "status")
        await kube.patch(path, {"status": {"nominatedNodeName": written or None}})
        await withdraw_nomination(kube, pod_request(pod), "far")
        left = (await kube.get(PODS, "p", "default"))["status"].get("nominatedNodeName", "")
        assert left == ("" if written == "far" else written)


async def test_a_nomination_of_a_new_pod_of_the_same_name_is_not_taken_back(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        pod = await waiting_pod(kube, "p", units=HALF)
        await kube.patch(
            PODS.path("default", "p", "status"), {"status": {"nominatedNodeName": "far"}}
        )
        await withdraw_nomination(kube, replace(pod_request(pod), uid="another"), "far")
        assert (await kube.get(PODS, "p", "default"))["status"]["nominatedNodeName"] == "far"


async def test_inspect_shows_cards_and_pods(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 1)
        async with extender(kube) as caller:
            assert await caller.bind(await waiting_pod(kube, "p", units=3), "a") == ""
            shown = await caller.get("/gpushare-scheduler/inspect/a")
            pods = [{"name": "p", "namespace": "default", "usedGPU": 3}]
            card = {"id": 0, "totalGPU": CARD_UNITS, "usedGPU": 3, "pods": pods}
            assert shown == {
                "nodes": [{"name": "a", "totalGPU": CARD_UNITS, "usedGPU": 3, "devs": [card]}]
            }
            assert await caller.get("/gpushare-scheduler/inspect/b") == {"nodes": []}
            assert "version" in await caller.get("/version")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"Pod": 1}', b'{"Pod": {"metadata": {"name": "p"}}, "NodeNames": 1}'],
)
async def test_messages_that_cannot_be_parsed_are_refused(tmp_path: Path, body: bytes) -> None:
    async with world(tmp_path) as kube, extender(kube) as caller:
        for verb in ("filter", "prioritize", "preempt", "bind"):
            assert await caller.status(f"/gpushare-scheduler/{verb}", body) == 400


async def test_a_running_pod_gets_another_share(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 1)
        async with extender(kube) as caller:
            assert await caller.bind(await waiting_pod(kube, "p", units=3), "a") == ""
            assert (await resize(kube, ("default", "p"), "", HALF, 60)).startswith("done: ")
            assert await caller.bind(await waiting_pod(kube, "q", units=HALF), "a") == ""
            said = await resize(kube, ("default", "p"), "", HALF + 1, 60)
            assert said.startswith(f"refused: card 0 of node a has {CARD_UNITS} units; others hold")
            assert_no_card_over(await bound(kube, 2))


async def test_the_extender_takes_the_lease_and_serves_the_schedulers_pods(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 2)
        async with elected(kube, "scheduler"):
            await kube.create(PODS, gpu_pod("before", units=HALF))
            await bound(kube, 1, 60)
            async with extender(kube) as caller:
                asked = await waiting_pod(kube, "asked", units=HALF)
                assert (await caller.filter(asked, "a"))["NodeNames"] == ["a"]
                await kube.create(PODS, gpu_pod("during", units=HALF))
                await bound(kube, 2, 60)
                assert await caller.bind(asked, "a") == ""
            await kube.create(PODS, gpu_pod("after", units=HALF))
            assert_no_card_over(await bound(kube, 4, 60))
