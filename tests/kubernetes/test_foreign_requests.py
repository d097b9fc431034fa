"""Words of other GPU systems on a real kube-apiserver: it evaluates our match conditions.

No kubelets and no scheduler: what becomes of a pod is seen when it is created.
"""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpupool.admission.review import Rules
from gpupool.admission.run import AdmissionSettings, run_admission
from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Card, Inventory
from kubeclient.client import Kube
from kubeclient.credentials import find_access
from kubeclient.errors import AlreadyExists, Refused
from kubeclient.https import connected
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS, SERVICE_ACCOUNTS
from testbed import build
from testbed.controlplane import ControlPlane

pytestmark = pytest.mark.kubernetes

MANIFESTS = Path(__file__).parent.parent / "e2e" / "foreign"


@pytest.fixture
def plane(able: None) -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        yield running


@contextlib.asynccontextmanager
async def admission(plane: ControlPlane, **settings: Any) -> AsyncIterator[Kube]:
    access = await find_access({}, kubeconfig=str(plane.kubeconfig))
    async with connected(access, "test") as kube:
        account = {"metadata": {"name": "default", "namespace": "default"}}
        for resource, obj in ((SERVICE_ACCOUNTS, account), (NODES, gpu_node())):
            with contextlib.suppress(AlreadyExists):
                await kube.create(resource, obj)
        registered = asyncio.Event()
        chosen = AdmissionSettings(Rules(frozenset()), **settings)
        running = asyncio.create_task(
            run_admission(kube, chosen, ready=lambda _port: registered.set())
        )
        try:
            await registered.wait()
            yield kube
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def gpu_node() -> Obj:
    card = Card(0, "GPU-0", "Tesla V100-SXM2-16GB", 16130)
    annotations = {"gpupool.io/inventory": inventory_text(Inventory((card,)))}
    return {"metadata": {"name": "n", "labels": {"cgpu": "true"}, "annotations": annotations}}


def asking(name: str, limits: Obj | None = None, annotations: Obj | None = None) -> Obj:
    container = {"name": "c", "image": "x", "resources": {"limits": limits or {}}}
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {"containers": [container]},
    }


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """What `look` gives once that is true: the API server reads a registration, and admission a
    node, a moment after they were written."""
    async with asyncio.timeout(60):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(0.1)


async def created(kube: Kube, pod: Obj) -> Obj:
    """As a dry run, once admission has changed it."""

    async def look() -> Obj | None:
        made = await kube.create(PODS, pod, query={"dryRun": "All"})
        return None if made["spec"]["schedulerName"] == "default-scheduler" else made

    made: Obj = await eventually(look)
    return made


def limits(pod: Obj) -> Obj:
    found: Obj = pod["spec"]["containers"][0]["resources"]["limits"]
    return found


async def test_words_of_other_systems_become_ours(plane: ControlPlane) -> None:
    async with admission(plane) as kube:
        hami = await created(kube, asking("hami", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}))
        assert limits(hami) == {"aliyun.com/gpu-mem": "3"}
        kai = asking("kai", annotations={"gpu-fraction": "0.5"})
        kai["metadata"]["labels"] = {"kai.scheduler/queue": "q"}
        kai["spec"]["schedulerName"] = "kai-scheduler"
        assert limits(await created(kube, kai)) == {"aliyun.com/gpu-mem": "8"}
        key = "nvidia.com/container.c.gpu-memory.limit"
        fractioning = await created(kube, asking("f", annotations={key: "2Gi"}))
        assert limits(fractioning) == {"aliyun.com/gpu-mem": "2"}
        plain = await kube.create(PODS, asking("p", annotations={"gpu-memory": "2"}))
        assert plain["spec"]["schedulerName"] == "default-scheduler"


async def test_devices_by_annotation_are_refused_on_every_pod(plane: ControlPlane) -> None:
    async with admission(plane) as kube:
        await created(kube, asking("first", {"aliyun.com/gpu-mem": 1}))
        for key in ("nvidia.cdi.k8s.io/container.c", "nvidia.cdi.k8s.io", "cdi.k8s.io/x"):
            with pytest.raises(Refused, match="only the scheduler writes it"):
                await kube.create(PODS, asking("taker", annotations={key: "nvidia.com/gpu=all"}))


async def test_unrequested_cards_can_be_hidden(plane: ControlPlane) -> None:
    async with admission(plane, hide_unrequested=True) as kube:
        await created(kube, asking("first", {"aliyun.com/gpu-mem": 1}))
        seeing = asking("seeing")
        seeing["spec"]["containers"][0]["env"] = [
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
        ]

        async def is_hidden() -> bool:
            made = await kube.create(PODS, seeing, query={"dryRun": "All"})
            return bool(made["spec"]["containers"][0]["env"][0]["value"] == "void")

        await eventually(is_hidden)


async def test_kubectl_shows_one_warning_for_a_workload(plane: ControlPlane) -> None:
    async with admission(plane) as kube:
        await created(kube, asking("first", {"aliyun.com/gpu-mem": 1}))
        done = await asyncio.to_thread(
            subprocess.run,
            [
                str(build.ensure("kubectl")),
                f"--kubeconfig={plane.kubeconfig}",
                *("apply", "-f", str(MANIFESTS / "volcano.yaml")),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stderr.count("Warning") == 1
    assert "words of another system were understood: cuda: volcano.sh/vgpu-number=1" in done.stderr


async def test_words_of_a_system_that_runs_are_left_to_it(plane: ControlPlane) -> None:
    async with admission(plane) as kube:
        await created(kube, asking("first", {"aliyun.com/gpu-mem": 1}))
        mark = {"metadata": {"annotations": {"hami.io/node-nvidia-register": "x"}}}
        await kube.patch(NODES.path(name="n"), mark)

        async def left_alone() -> bool:
            asked = asking("hami", {"nvidia.com/gpumem": 3000})
            made = await kube.create(PODS, asked, query={"dryRun": "All"})
            return "nvidia.com/gpumem" in limits(made)

        await eventually(left_alone)
