"""Volume claims: a pod goes where its volumes are, and reports which claims it waits for."""

from pathlib import Path

from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import CSI_NODES, NODES, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
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


async def bind_claim(kube: Kube, claim: Obj, source: Obj) -> None:
    """A claim that is bound to a new volume."""
    metadata = claim["metadata"]
    name = f"volume-of-{metadata['name']}"
    ref = {key: metadata[key] for key in ("namespace", "name", "uid")}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **ref},
        **source,
    }
    await kube.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
    path = VOLUME_CLAIMS.path("default", metadata["name"])
    await kube.patch(path, {"spec": {"volumeName": name}})
    await kube.patch(f"{path}/status", {"status": {"phase": "Bound"}})


def local_to(node: str) -> Obj:
    key = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = [{"matchExpressions": [key]}]
    return {
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }


async def add_disk(kube: Kube, name: str) -> None:
    """A claim with a volume that a CSI driver attaches."""
    claim = await add_claim(kube, name)
    await bind_claim(kube, claim, {"csi": {"driver": "disks.example", "volumeHandle": name}})


async def limit_disks(kube: Kube, node: str, count: int) -> None:
    driver = {"name": "disks.example", "nodeID": node, "allocatable": {"count": count}}
    await kube.create(CSI_NODES, {"metadata": {"name": node}, "spec": {"drivers": [driver]}})


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
        await bind_claim(kube, claim, local_to("b"))
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


async def test_a_node_takes_only_as_many_volumes_as_its_driver_can_attach(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "a", 4)
        await limit_disks(kube, "a", 1)
        for name in ("one", "two"):
            await add_disk(kube, name)
        async with scheduling(kube):
            await add_pods(kube, with_claim("p", "one"))
            await bound(kube, 1)
            await add_pods(kube, with_claim("other", "two"))
            said = await condition(kube, "other")
            assert said["message"].startswith(
                "0/1 nodes are available: 1 node(s) exceed max volume count."
            )
            await add_pods(kube, with_claim("sharing", "one"))  # attached already
            await bound(kube, 2)
            # A scheduler that starts now counts the same.
        async with scheduling(kube):
            await add_pods(kube, with_claim("third", "two"))
            assert "exceed max volume count" in (await condition(kube, "third"))["message"]
            await kube.delete(CSI_NODES, "a")
            await bound(kube, 4)


async def test_a_volume_with_zone_labels_is_used_in_its_zone(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        for name in ("a", "b"):
            await add_node(kube, name, 1)
            labels = {"topology.kubernetes.io/zone": f"zone-{name}"}
            await kube.patch(NODES.path(name=name), {"metadata": {"labels": labels}})
        claim = await add_claim(kube, "data")
        await bind_claim(kube, claim, {"hostPath": {"path": "/data"}})
        old = {"failure-domain.beta.kubernetes.io/zone": "zone-b__zone-c"}
        await kube.patch(VOLUMES.path(name="volume-of-data"), {"metadata": {"labels": old}})
        await add_pods(kube, with_claim("p", "data"))
        [pod] = await bound(kube, 1)
        assert pod["spec"]["nodeName"] == "b"
