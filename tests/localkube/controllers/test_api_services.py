"""Every served group version is registered as an APIService."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import API_SERVICES, CRDS
from localkube.apiserver.kinds import builtin_kinds
from localkube.controllers import api_services
from tests.localkube.controllers.desk import Desk, desk_for


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, api_services.CONTROLLER) as found:
        yield found


def definition(*, served: bool = True) -> Obj:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": schema},
        {"name": "v2", "served": served, "storage": False, "schema": schema},
    ]
    names = {"plural": "toys", "kind": "Toy"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "toys.example.com"}, "spec": spec}


async def test_the_built_in_group_versions_are_local_and_available(desk: Desk) -> None:
    found = {each["metadata"]["name"]: each for each in await desk.all(API_SERVICES)}
    served = {f"{kind.version}.{kind.group}" for kind in builtin_kinds()}
    assert found.keys() == served - {"v1.apiregistration.k8s.io"}
    for each in found.values():
        (condition,) = each["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("True", "Local")


async def test_custom_group_versions_come_and_go_with_their_definitions(desk: Desk) -> None:
    await desk.create(CRDS, definition(served=False))
    await desk.settle()
    assert "v1.example.com" in await desk.names(API_SERVICES)
    assert "v2.example.com" not in await desk.names(API_SERVICES)
    await desk.patch(CRDS, "toys.example.com", {"spec": definition()["spec"]})
    await desk.settle()
    assert "v2.example.com" in await desk.names(API_SERVICES)
    await desk.patch(CRDS, "toys.example.com", {"metadata": {"finalizers": None}})
    await desk.kube.delete(CRDS, "toys.example.com")
    await desk.settle()
    assert not [name for name in await desk.names(API_SERVICES) if name.endswith("example.com")]


async def test_a_registration_that_is_kept_by_the_cluster_cannot_be_changed(desk: Desk) -> None:
    await desk.create(CRDS, definition())
    await desk.settle()
    await desk.patch(API_SERVICES, "v1.example.com", {"spec": {"versionPriority": 7}})
    await desk.settle()
    found = await desk.get(API_SERVICES, "v1.example.com")
    assert found["spec"]["versionPriority"] == 100


async def test_a_registration_of_somebody_else_is_left_alone(desk: Desk) -> None:
    service = {"namespace": "default", "name": "s"}
    spec: Obj = {"group": "other.com", "version": "v1", "service": service}
    spec |= {"groupPriorityMinimum": 5, "versionPriority": 5}
    await desk.create(API_SERVICES, {"metadata": {"name": "v1.other.com"}, "spec": spec})
    await desk.settle()
    assert "v1.other.com" in await desk.names(API_SERVICES)
