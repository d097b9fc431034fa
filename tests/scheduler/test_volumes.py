"""Volume claims: a pod goes where its volumes are, and reports which claims it waits for."""

from pathlib import Path

from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from tests.scheduler.test_scheduler import condition
from tests.scheduler.world import add_node, add_pods, bound, gpu_pod, scheduling, world


def with_claim(name: str, claim: str) -> Obj:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return gpu_pod(name, units=1, volumes=[volume])


async def add_claim(kube: Kube, name: str, storage_class: str = "") -> Obj:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    metadata = {"name": name, "namespace": "default"}
    return await kube.create(VOLUME_CLAIMS, {"metadata": metadata, "spec": spec})


async def bind_claim(kube: Kube, claim: Obj, node: str) -> None:
    """A claim that is bound to a volume on one node."""
    key = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [key]}]}},
    }
    await kube.create(VOLUMES, {"metadata": {"name": "volume"}, "spec": spec})
    path = VOLUME_CLAIMS.path("default", claim["metadata"]["name"])
    await kube.patch(path, {"spec": {"volumeName": "volume"}})
    await kube.patch(f"{path}/status", {"status": {"phase": "Bound"}})


async def test_a_pod_waits_for_its_claim_and_goes_where_the_volume_is(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        for name in ("a", "b", "c"):
            await add_node(kube, name, 1)
        await add_pods(kube, with_claim("p", "data"))
        said = await condition(kube, "p")
        assert said["message"] == (
            '0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: '
            "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )
        claim = await add_claim(kube, "data")
        await bind_claim(kube, claim, "b")
        [pod] = await bound(kube, 1)
        assert pod["spec"]["nodeName"] == "b"


async def test_an_unbound_claim_is_waited_for(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "a", 1)
        await add_claim(kube, "data")
        await add_pods(kube, with_claim("p", "data"))
        said = await condition(kube, "p")
        assert "pod has unbound immediate PersistentVolumeClaims" in said["message"]


async def test_unsupported_claims_are_named_in_the_message(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "a", 1)
        await kube.create(
            STORAGE_CLASSES,
            {
                "metadata": {"name": "late"},
                "provisioner": "x",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )
        await add_claim(kube, "data", "late")
        await add_pods(kube, with_claim("p", "data"))
        said = await condition(kube, "p")
        assert (
            "does not support claim data that is only bound for its first consumer"
            in said["message"]
        )
