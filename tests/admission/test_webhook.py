"""The webhook as the API server calls it: real HTTPS, real configurations, real conditions."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Card, Inventory
from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.apiserver.security.identities import ADMIN, SCHEDULER
from localkube.apiserver.server import ApiServer
from tests.admission.pods import container, environment, pod
from tests.admission.server import webhook, whole_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with whole_server(tmp_path) as made:
        yield made


@pytest.fixture
def kube(server: ApiServer) -> Kube:
    return server.client(ADMIN)


@pytest.fixture
async def port(server: ApiServer) -> AsyncIterator[int]:
    async with webhook(server) as made:
        yield made


def named(name: str, *containers: Obj, annotations: Obj | None = None) -> Obj:
    made = pod(*containers)
    made["metadata"] = {"name": name, "namespace": "default", "annotations": annotations or {}}
    for one in made["spec"]["containers"]:
        one["image"] = "pause"
    return made


async def shared_node(kube: Kube, name: str) -> None:
    card = Card(0, "GPU-a", "Tesla V100-SXM2-16GB", 16130)
    annotations = {"gpupool.io/inventory": inventory_text(Inventory((card,)))}
    metadata = {"name": name, "labels": {"cgpu": "true"}, "annotations": annotations}
    await kube.create(NODES, {"metadata": metadata})


@pytest.mark.usefixtures("port")
async def test_a_pod_without_containers_is_refused_by_the_server_itself(kube: Kube) -> None:
    with pytest.raises(Refused, match=r"spec\.containers: Required value"):
        await kube.create(PODS, named("p"))


@pytest.mark.usefixtures("port")
async def test_a_gpu_pod_gets_its_variables_when_it_is_created(kube: Kube) -> None:
    made = await kube.create(PODS, named("p", container("main", alpha=2)))
    assert made["spec"]["schedulerName"] == "gpupool-scheduler"
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert "'devices.gpupool.io/main'" in environment(made)["NVIDIA_VISIBLE_DEVICES"]


@pytest.mark.usefixtures("port")
async def test_the_reason_of_a_refusal_reaches_the_user(kube: Kube) -> None:
    with pytest.raises(Refused) as refused:
        await kube.create(PODS, named("p", container("main", gpu="0.5")))
    assert str(refused.value) == (
        'admission webhook "pods.gpupool.io" denied the request: '
        "spec.containers[0].resources.limits[nvidia.com/gpu]: wanted a whole number, found 0.5"
    )


@pytest.mark.usefixtures("port")
async def test_a_new_inventory_takes_effect_at_once(kube: Kube) -> None:
    await kube.create(PODS, named("early", container("main", gpu_mem=16)))
    await shared_node(kube, "n1")
    await asyncio.sleep(0)  # the watch event is on its way
    with pytest.raises(Refused, match="wanted a number of GiB, at most 15"):
        await kube.create(PODS, named("late", container("main", gpu_mem=16)))


ALLOCATION = {"gpupool.io/allocation": json.dumps({"version": 1, "containers": {}})}


@pytest.mark.usefixtures("port")
async def test_nobody_forges_an_allocation(kube: Kube) -> None:
    with pytest.raises(Refused, match="only the scheduler writes it"):
        await kube.create(PODS, named("p", container("main"), annotations=ALLOCATION))
    made = await kube.create(PODS, named("p", container("main", gpu_mem=3)))
    with pytest.raises(Refused, match="only the scheduler writes it"):
        await kube.patch(
            PODS.path("default", "p"), {"metadata": {"annotations": {"limits.gpupool.io/main": ""}}}
        )
    with pytest.raises(Refused, match="only the scheduler writes it"):
        await kube.bind(made, "n1", ALLOCATION)
    with pytest.raises(Refused, match="only the scheduler writes it"):
        await kube.patch(
            PODS.path("default", "p", "status"), {"metadata": {"annotations": ALLOCATION}}
        )


@pytest.mark.usefixtures("port")
async def test_no_container_that_is_added_later_mounts_a_volume_of_the_limiter(kube: Kube) -> None:
    await kube.create(PODS, named("p", container("main", gpu_mem=3)))
    path = PODS.path("default", "p", "ephemeralcontainers")

    plain = {"name": "later", "image": "pause"}
    mounts = [{"name": "gpupool-region-0", "mountPath": "/x"}]
    with pytest.raises(Refused) as refused:
        await kube.patch(
            path, {"spec": {"ephemeralContainers": [{**plain, "volumeMounts": mounts}]}}
        )
    assert str(refused.value) == (
        'admission webhook "paths.gpupool.io" denied the request: '
        "spec.ephemeralContainers[0].volumeMounts[0].name: wanted a volume that is not gpupool's "
        "own, found gpupool-region-0"
    )
    await kube.patch(path, {"spec": {"ephemeralContainers": [plain]}})


@pytest.mark.usefixtures("port")
async def test_the_scheduler_binds_with_an_allocation_that_then_stays(
    kube: Kube, server: ApiServer
) -> None:
    await shared_node(kube, "n1")
    made = await kube.create(PODS, named("p", container("main", gpu_mem=3)))
    await server.client(SCHEDULER).bind(made, "n1", ALLOCATION)
    bound = await kube.get(PODS, "p", "default")
    assert bound["metadata"]["annotations"] == ALLOCATION
    path = PODS.path("default", "p")
    await kube.patch(path, {"metadata": {"annotations": {"mine": "1"}}})
    with pytest.raises(Refused, match="only the scheduler writes it"):
        await kube.patch(path, {"metadata": {"annotations": None}})


async def test_kubelets_can_write_while_the_webhook_is_down(kube: Kube, server: ApiServer) -> None:
    async with webhook(server):
        made = await kube.create(PODS, named("p", container("main", gpu_mem=3)))
        await server.client(SCHEDULER).bind(made, "n1", ALLOCATION)
    path = PODS.path("default", "p", "status")
    await kube.patch(path, {"status": {"phase": "Running"}})


async def test_only_gpu_pods_are_refused_while_the_webhook_is_down(
    kube: Kube, server: ApiServer
) -> None:
    async with contextlib.AsyncExitStack() as life:
        await life.enter_async_context(webhook(server))
    await kube.create(PODS, named("plain", container("main")))
    with pytest.raises(Refused, match="failed calling webhook"):
        await kube.create(PODS, named("gpu", container("main", gpu=1)))
    async with webhook(server):
        await kube.create(PODS, named("gpu", container("main", gpu=1)))


@pytest.mark.usefixtures("port")
async def test_no_pod_takes_a_card_by_annotation_with_or_without_a_request(kube: Kube) -> None:
    card = {"nvidia.cdi.k8s.io/container.main": "nvidia.com/gpu=GPU-a"}
    for asked in (container("main"), container("main", gpu=1)):
        with pytest.raises(Refused, match="only the scheduler writes it"):
            await kube.create(PODS, named("p", asked, annotations=card))
    await kube.create(PODS, named("p", container("main")))
    bare = {"metadata": {"annotations": {"cdi.k8s.io": "nvidia.com/gpu=all"}}}
    with pytest.raises(Refused, match="only the scheduler writes it"):
        await kube.patch(PODS.path("default", "p"), bare)


def annotated(name: str, annotations: Obj, **more: str) -> Obj:
    made = named(name, container("main"), annotations=annotations)
    made["metadata"]["labels"] = {"kai.scheduler/queue": "default"}
    made["spec"] |= more
    return made


@pytest.mark.usefixtures("port")
async def test_words_of_other_systems_reach_the_webhook_and_become_ours(kube: Kube) -> None:
    await shared_node(kube, "n")
    fraction = annotated("kai", {"gpu-fraction": "0.5"}, schedulerName="kai-scheduler")
    memory = annotated("fr", {"nvidia.com/container.main.gpu-memory.limit": "2Gi"})
    hami = named("hami", container("main"))
    hami["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpumem": "3000"}}
    for pod_, units in ((fraction, "8"), (memory, "2"), (hami, "3")):
        made = await kube.create(PODS, pod_)
        assert made["spec"]["containers"][0]["resources"]["limits"] == {"aliyun.com/gpu-mem": units}
        assert made["spec"]["schedulerName"] == "gpupool-scheduler"
        assert "gpupool.io/translated" in made["metadata"]["annotations"]


@pytest.mark.usefixtures("port")
async def test_other_pods_with_such_names_are_created_as_they_are(kube: Kube) -> None:
    plain = named("p", container("main"), annotations={"gpu-memory": "1"})
    made = await kube.create(PODS, plain)
    assert made["metadata"]["annotations"] == {"gpu-memory": "1"}
    assert made["spec"]["schedulerName"] == "default-scheduler"
