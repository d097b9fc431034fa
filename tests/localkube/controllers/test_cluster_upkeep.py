"""The default ServiceAccount and root certificate of namespaces, and the cleanup of CRDs."""

from pathlib import Path
from typing import Any

import pytest

from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, CRDS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from localkube.controllers import crd_cleanup, service_account
from tests.localkube.controllers.desk import desk_for

TOYS = Resource("example.com", "v1", "toys", "Toy")


def definition() -> Obj:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    return {
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy"},
            "versions": [version],
        },
    }


def toy(**metadata: Any) -> Obj:
    head = {"apiVersion": "example.com/v1", "kind": "Toy"}
    return {**head, "metadata": {"name": "t", **metadata}}


async def test_a_namespace_has_an_account_and_the_authority(tmp_path: Path) -> None:
    async with desk_for(tmp_path, service_account.controller("PEM")) as desk:
        await desk.kube.create(NAMESPACES, {"metadata": {"name": "new"}})
        await desk.settle()
        assert await desk.kube.get(SERVICE_ACCOUNTS, "default", "new")
        bundle = await desk.kube.get(CONFIG_MAPS, "kube-root-ca.crt", "new")
        assert bundle["data"] == {"ca.crt": "PEM"}


async def test_account_and_root_certificate_are_restored_when_deleted_or_changed(
    tmp_path: Path,
) -> None:
    async with desk_for(tmp_path, service_account.controller("PEM")) as desk:
        await desk.settle()
        await desk.delete(SERVICE_ACCOUNTS, "default")
        await desk.patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "other"}})
        await desk.settle()
        assert await desk.get(SERVICE_ACCOUNTS, "default")
        assert (await desk.get(CONFIG_MAPS, "kube-root-ca.crt"))["data"] == {"ca.crt": "PEM"}


async def test_a_namespace_that_is_going_gets_nothing_new(tmp_path: Path) -> None:
    async with desk_for(tmp_path, service_account.controller("PEM")) as desk:
        await desk.kube.create(NAMESPACES, {"metadata": {"name": "old"}})
        await desk.settle()
        await desk.kube.delete(NAMESPACES, "old")
        await desk.kube.delete(SERVICE_ACCOUNTS, "default", "old")
        await desk.settle()
        with pytest.raises(NotFound):
            await desk.kube.get(SERVICE_ACCOUNTS, "default", "old")


async def test_a_deleted_crd_deletes_its_objects(tmp_path: Path) -> None:
    async with desk_for(tmp_path, crd_cleanup.CONTROLLER) as desk:
        await desk.create(CRDS, definition())
        await desk.create(TOYS, toy())
        await desk.kube.delete(CRDS, "toys.example.com")
        await desk.settle()
        with pytest.raises(NotFound):
            await desk.kube.get(CRDS, "toys.example.com")
        await desk.create(CRDS, definition())
        assert (await desk.kube.list(TOYS)).items == []


async def test_an_object_with_a_finalizer_delays_the_deletion_of_its_crd(tmp_path: Path) -> None:
    async with desk_for(tmp_path, crd_cleanup.CONTROLLER) as desk:
        await desk.create(CRDS, definition())
        await desk.create(TOYS, toy(finalizers=["example.com/hold"]))
        await desk.kube.delete(CRDS, "toys.example.com")
        await desk.settle()
        found = await desk.kube.get(CRDS, "toys.example.com")
        reasons = {c["type"]: c["reason"] for c in found["status"]["conditions"]}
        assert reasons["Terminating"] == "InstanceDeletionInProgress"
        await desk.patch(TOYS, "t", {"metadata": {"finalizers": None}})
        desk.forward(1)
        await desk.settle()
        with pytest.raises(NotFound):
            await desk.kube.get(CRDS, "toys.example.com")
