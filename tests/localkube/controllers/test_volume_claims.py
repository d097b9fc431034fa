"""Volumes of claims: their directories, and what happens to them after the claim."""

from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from localkube.controllers import volume_claims
from localkube.names import DEFAULT
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod


def claim(**spec: Any) -> Obj:
    full: Obj = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": volume_claims.CLASS_NAME,
        **spec,
    }
    return {"metadata": {"name": "data"}, "spec": full}


async def _bound(desk: Desk, storage_class: Obj | None = None) -> Obj:
    await desk.create(STORAGE_CLASSES, storage_class or volume_claims.storage_class())
    await desk.create(VOLUME_CLAIMS, claim())
    await desk.settle()
    return await desk.get(VOLUME_CLAIMS, "data")


async def test_a_claim_is_bound_to_a_volume_of_its_own(tmp_path: Path) -> None:
    files = tmp_path / "volumes"
    async with desk_for(tmp_path, volume_claims.controller(files)) as desk:
        found = await _bound(desk)
        assert found["status"]["phase"] == "Bound"
        assert found["status"]["capacity"] == {"storage": "1Gi"}
        volume = await desk.get(VOLUMES, found["spec"]["volumeName"])
        assert volume["status"]["phase"] == "Bound"
        assert volume["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
        path = Path(volume["spec"]["hostPath"]["path"])
        assert path.parent == files


async def test_a_product_keeps_its_own_provisioner(tmp_path: Path) -> None:
    """Clusters keep their StorageClass over updates of the product."""
    mine = "acme.example/local-directory"
    async with desk_for(tmp_path, volume_claims.controller(tmp_path, mine)) as desk:
        found = await _bound(desk, volume_claims.storage_class(mine))
        volume = await desk.get(VOLUMES, found["spec"]["volumeName"])
        assert volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == mine


async def test_a_claim_of_another_class_is_left_alone(tmp_path: Path) -> None:
    async with desk_for(tmp_path, volume_claims.controller(tmp_path)) as desk:
        await desk.create(STORAGE_CLASSES, volume_claims.storage_class())
        other = {"metadata": {"name": "other"}, "provisioner": "example.com/other"}
        await desk.create(STORAGE_CLASSES, other)
        await desk.create(VOLUME_CLAIMS, claim(storageClassName="other"))
        await desk.settle()
        assert (await desk.get(VOLUME_CLAIMS, "data"))["status"]["phase"] == "Pending"
        assert await desk.names(VOLUMES) == []


async def test_files_and_volume_go_with_the_claim(tmp_path: Path) -> None:
    files = tmp_path / "volumes"
    both = (volume_claims.controller(files), volume_claims.reclaimer(files))
    async with desk_for(tmp_path, *both) as desk:
        name = (await _bound(desk))["spec"]["volumeName"]
        (files / name).mkdir(parents=True)
        (files / name / "model").write_text("weights")
        (files / "other").mkdir()
        await desk.delete(VOLUME_CLAIMS, "data")
        await desk.settle()
        assert await desk.names(VOLUMES) == []
        assert [path.name for path in files.iterdir()] == ["other"]


async def test_files_stay_while_a_pod_uses_them(tmp_path: Path) -> None:
    files = tmp_path / "volumes"
    both = (volume_claims.controller(files), volume_claims.reclaimer(files))
    async with desk_for(tmp_path, *both) as desk:
        name = (await _bound(desk))["spec"]["volumeName"]
        (files / name).mkdir(parents=True)
        user = pod("user", "web")
        user["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
        made = await desk.create(PODS, user)
        await desk.delete(VOLUME_CLAIMS, "data")
        await desk.settle()
        assert (files / name).exists()
        await desk.set_phase(made, "Succeeded")
        desk.forward(1)
        await desk.settle()
        assert not (files / name).exists()


async def test_a_volume_that_is_to_be_kept_is_released(tmp_path: Path) -> None:
    files = tmp_path / "volumes"
    both = (volume_claims.controller(files), volume_claims.reclaimer(files))
    async with desk_for(tmp_path, *both) as desk:
        kept = volume_claims.storage_class() | {"reclaimPolicy": "Retain"}
        name = (await _bound(desk, kept))["spec"]["volumeName"]
        (files / name).mkdir(parents=True)
        await desk.delete(VOLUME_CLAIMS, "data")
        await desk.settle()
        assert (await desk.get(VOLUMES, name))["status"]["phase"] == "Released"
        assert (files / name).exists()


async def test_a_volume_with_a_strange_name_loses_no_files(tmp_path: Path) -> None:
    files = tmp_path / "volumes"
    (files / "precious").mkdir(parents=True)
    async with desk_for(tmp_path, volume_claims.reclaimer(files)) as desk:
        notes = {"pv.kubernetes.io/provisioned-by": DEFAULT.provisioner}
        volume = {
            "metadata": {"name": "precious", "annotations": notes},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {"namespace": "default", "name": "gone", "uid": "u"},
                "hostPath": {"path": "/nowhere"},
            },
        }
        await desk.create(VOLUMES, volume)
        await desk.settle()
        assert await desk.names(VOLUMES) == []
        assert (files / "precious").exists()


@pytest.mark.parametrize(
    "reference",
    [{"name": "data"}, {"name": "data", "namespace": "default"}, {"uid": "u"}],
)
@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_a_volume_that_waits_for_a_claim_of_a_name_is_neither_released_nor_deleted(
    tmp_path: Path, reference: Obj, policy: str
) -> None:
    """As in Kubernetes. The API accepts a claimRef without a namespace, too."""
    async with desk_for(tmp_path, volume_claims.reclaimer(tmp_path)) as desk:
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "claimRef": reference,
            "persistentVolumeReclaimPolicy": policy,
        }
        await desk.create(VOLUMES, {"metadata": {"name": "half"}, "spec": spec})
        await desk.settle()
        assert (await desk.get(VOLUMES, "half"))["status"]["phase"] != "Released"


async def test_a_volume_whose_claim_the_mirror_does_not_show_keeps_its_files(
    tmp_path: Path,
) -> None:
    files = tmp_path / "volumes"
    both = volume_claims.controller(files), volume_claims.reclaimer(files)
    async with desk_for(tmp_path, *both) as desk:
        name = (await _bound(desk))["spec"]["volumeName"]
        (files / name).mkdir(parents=True, exist_ok=True)
        desk.mirrors.of(VOLUME_CLAIMS)._objects.clear()
        desk.forward(1)
        await desk.settle()
        assert await desk.names(VOLUMES) == [name]
        assert (files / name).exists()
