"""Canaries: which pods are started, what they show, and that they are deleted whatever happens."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, cast

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Allocation, Card, CardShare, ContainerGpus, Inventory, Isolation
from gpupool.core.ways import Way, Ways
from gpupool.doctor import canary_run
from gpupool.doctor.canary import CONTAINER, Canary, canaries, canary_pod, judged
from gpupool.doctor.evidence import Level
from gpupool.testing import Cluster
from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import Resource
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

SHARED = {"cgpu": "true"}
CANARY = Canary("an isolated share", ("n", "o", "p"), 3, "nri", "aliyun.com/gpu-mem")


def node(name: str, labels: Obj, ways: Ways | None, isolates: bool | None = None) -> Obj:
    cards = (Card(0, f"GPU-{name}", "V100", 16130),)
    text = inventory_text(Inventory(cards, isolates=isolates, ways=ways))
    return {
        "metadata": {"name": name, "labels": labels, "annotations": {"gpupool.io/inventory": text}}
    }


def test_each_kind_of_node_gets_one_of_each_kind_of_pod() -> None:
    runtime, by_class = Ways(Way.RUNTIME), Ways(Way.RUNTIME_CLASS, runtime_class="nvidia")
    nodes = [
        node("a", {}, runtime),
        node("b", {}, runtime),
        node("c", {}, by_class),
        node("d", SHARED, runtime, isolates=True),
        node("e", {**SHARED, "gpupool.io/allow-no-isolation": "true"}, runtime, isolates=True),
        node("f", SHARED, runtime, isolates=False),
        node("g", {}, Ways(problem="none")) | {"status": {}},
    ]
    found = [(each.nodes, each.kind, each.like, each.way) for each in canaries(nodes)]
    assert found[:6] == [
        (("a", "b"), "a whole card", 2, "runtime"),
        (("c",), "a whole card", 1, "runtime-class=nvidia"),
        (("d",), "an isolated share", 1, "runtime"),
        (("e",), "an isolated share", 1, "runtime"),
        (("e",), "a share without isolation", 1, "runtime"),
        (("f",), "a share without isolation", 1, "runtime"),
    ]


def flown(said: str | None, *, isolation: Isolation = Isolation.LIMIT, **status: object) -> Obj:
    share = CardShare("GPU-a", 0, 3, 3226, 15)
    allocation = Allocation((ContainerGpus(CONTAINER, (share,), isolation),))
    state: Obj = (
        {"terminated": {"reason": "Completed", "message": said}} if said is not None else {}
    )
    return {
        "metadata": {"annotations": allocation_annotations(allocation, now_ns=1)},
        "status": {"containerStatuses": [{"state": state}], **status},
    }


@pytest.mark.parametrize(
    ("said", "level", "words"),
    [
        ("card GPU-a 3226\ncuda 1\n", Level.OK, "sees exactly GPU-a with 3226 MiB (3 nodes are"),
        ("card GPU-a 3226\n", Level.OK, "sees exactly"),  # the image has no Python
        ("card GPU-a 16130\n", Level.WRONG, "sees 16130 MiB of card GPU-a, and should see 3226"),
        ("card GPU-b 3226\n", Level.WRONG, "sees GPU-b, and was given GPU-a"),
        ("card GPU-a 3226\ncard GPU-b 1\n", Level.WRONG, "sees GPU-a, GPU-b, and was given GPU-a"),
        ("sh: nvidia-smi: not found\n", Level.WRONG, "sees no card, and was given GPU-a: sh: nvid"),
        ("", Level.WRONG, "sees no card, and was given GPU-a: no answer"),
        ("card GPU-a 3226\ncuda cuInit-gives-100\n", Level.WRONG, "but CUDA does not: cuInit-giv"),
        (None, Level.WRONG, "did not run to its end"),
    ],
)
def test_what_a_pod_sees_is_compared_with_what_it_was_given(
    said: str | None, level: Level, words: str
) -> None:
    found = judged(CANARY, flown(said), {"GPU-a": 16130})
    assert found.level is level
    assert words in found.what
    assert "node n (way nri)" in found.what


def test_a_share_without_isolation_sees_the_whole_card() -> None:
    pod = flown("card GPU-a 16130\n", isolation=Isolation.NONE)
    assert judged(CANARY, pod, {"GPU-a": 16130}).level is Level.OK


def test_a_pod_that_found_no_room_proves_nothing() -> None:
    refused = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes: no room"}
    found = judged(CANARY, {"metadata": {}, "status": {"conditions": [refused]}}, {})
    assert found.level is Level.NOTE
    assert "0/1 nodes: no room" in found.what
    assert "on node n or 2 nodes like it" in found.what


def test_a_canary_goes_to_whichever_of_the_nodes_that_are_alike_has_room() -> None:
    pod = canary_pod(CANARY, "c", "kube-system", "image")
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (wanted,) = term["matchExpressions"]
    assert wanted["values"] == ["n", "o", "p"]
    placed = flown("card GPU-a 3226\n")
    found = judged(CANARY, {**placed, "spec": {"nodeName": "o"}}, {"GPU-a": 16130})
    assert "on node o " in found.what


def test_of_thousands_of_nodes_a_canary_names_a_hundred() -> None:
    (canary,) = canaries(node(f"n{number:04}", {}, Ways(Way.RUNTIME)) for number in range(3000))
    assert (len(canary.nodes), canary.like) == (100, 3000)


def test_a_canary_ends_by_itself_and_has_no_token() -> None:
    spec = canary_pod(CANARY, "x", "default", "image")["spec"]
    assert spec["activeDeadlineSeconds"] > 0
    assert spec["automountServiceAccountToken"] is False


class SlowApi:
    """A pod is there some time after it was asked for, whether anybody waits for it or not."""

    def __init__(self) -> None:
        self.pods: set[str] = set()
        self.asked, self.goes_on = asyncio.Event(), asyncio.Event()

    async def create(self, resource: Resource, pod: Obj) -> Obj:
        work = asyncio.ensure_future(self._create(pod))
        self.asked.set()
        return await asyncio.shield(work)

    async def _create(self, pod: Obj) -> Obj:
        await self.goes_on.wait()
        self.pods.add(pod["metadata"]["name"])
        return pod

    async def delete(self, resource: Resource, name: str, namespace: str, **rest: Any) -> None:
        if name not in self.pods:
            raise NotFound({"code": 404})
        self.pods.remove(name)


async def test_a_canary_that_is_being_created_at_ctrl_c_is_deleted_too() -> None:
    """Its deletion may otherwise be answered first: there is no such pod."""
    api = SlowApi()
    nodes = [node("n", {}, Ways(Way.RUNTIME))]
    flying = asyncio.ensure_future(
        canary_run._flown(
            cast(Kube, api), canary_pod(canaries(nodes)[0], "c", "default", "image"), within_s=60
        )
    )
    await api.asked.wait()
    flying.cancel()
    await asyncio.sleep(0)
    api.goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await flying
    assert not api.pods


# -- on a local cluster --------------------------------------------------------------------------

POOLS = [
    {"name": "whole", "instanceType": "ecs.gn4-c4g1.xlarge", "count": 2},
    {"name": "shared", "instanceType": "ecs.gn6v-c8g1.2xlarge", "count": 1, "labels": SHARED},
]
LABELLED = "/api/v1/pods?labelSelector=gpupool.io/canary"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        eventually(lambda: doctor(running)[1].count("offers") >= 1, within_s=120)
        yield running


def doctor(cluster: Cluster, *options: str) -> tuple[int, str]:
    where = ["--kubeconfig", str(cluster.kubeconfig)]
    done = CliRunner().invoke(gpupool, ["doctor", *where, *options])
    return done.exit_code, done.output


def left(cluster: Cluster) -> list[Obj]:
    found: list[Obj] = call(cluster, "GET", LABELLED)[1]["items"]
    return found


def test_doctor_says_the_way_of_nodes_that_are_alike_once(cluster: Cluster) -> None:
    said = doctor(cluster)[1]
    assert said.count("get into containers by NVIDIA's runtime") == 1
    assert "Cards of 3 nodes get into containers" in said


def test_canaries_on_a_local_cluster_see_what_they_were_given_and_are_gone(
    cluster: Cluster,
) -> None:
    code, said = doctor(cluster, "--canary", "-o", "json")
    findings = [each for each in json.loads(said)["items"] if each["subject"] == "canary"]
    assert [each["level"] for each in findings] == ["ok", "ok"], findings
    assert code == 0
    eventually(lambda: left(cluster) == [], within_s=60)


def test_ctrl_c_leaves_no_canary(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "gpupool", "doctor", "--canary", "--canary-image", "pause"]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: left(cluster), within_s=60)
        running.send_signal(signal.SIGINT)
        running.wait(timeout=60)
    finally:
        running.kill()
    eventually(lambda: left(cluster) == [], within_s=60)
