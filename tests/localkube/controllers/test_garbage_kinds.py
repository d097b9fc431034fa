"""Garbage collection of custom objects: their kinds come, go and change their versions."""

from pathlib import Path

from kubeclient.objects import Obj
from kubeclient.resources import CRDS, SECRETS, Resource
from localkube.controllers import crd_cleanup
from tests.localkube.controllers.collecting import (
    BACKGROUND,
    ORPHAN,
    child,
    collecting,
    collector,
    comes,
    exists,
    is_gone,
    owned_by,
    passes,
)
from tests.localkube.controllers.desk import Desk, desk_for

V1, V2 = (Resource("example.com", version, "toys", "Toy", True) for version in ("v1", "v2"))


def toys(*served: str, storage: str = "v1") -> Obj:
    versions = [
        {
            "name": version,
            "served": version in served,
            "storage": version == storage,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        }
        for version in ("v1", "v2")
    ]
    names = {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "toys.example.com"}, "spec": spec}


async def serve(desk: Desk, *versions: str) -> None:
    await desk.patch(CRDS, "toys.example.com", {"spec": toys(*versions)["spec"]})


async def toy(desk: Desk, *dependents: str) -> None:
    made = await desk.create(V1, {"apiVersion": "example.com/v1", "kind": "Toy"} | named("toy"))
    reference = owned_by(made, kind="Toy")[0] | {"apiVersion": "example.com/v1"}
    for name in dependents:
        await child(desk, [reference], name)


def named(name: str) -> Obj:
    return {"metadata": {"name": name}}


async def test_an_owner_lives_on_when_another_version_is_preferred(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        await desk.create(CRDS, toys("v1"))
        await toy(desk, "child")
        await passes(desk)
        for versions in (("v1", "v2"), ("v2",), ("v1",), ("v1", "v2")):
            await serve(desk, *versions)
            await passes(desk)
            # Any change of the dependent makes the collector look at it.
            await desk.patch(SECRETS, "child", {"metadata": {"labels": {"seen": versions[0]}}})
            await passes(desk)
            assert await exists(desk, SECRETS, "child")
        await desk.delete(V2, "toy", BACKGROUND)
        await comes(lambda: is_gone(desk, SECRETS, "child"))


async def test_an_owner_can_be_orphaned_after_another_version_is_preferred(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        await desk.create(CRDS, toys("v1"))
        await toy(desk, "child")
        async with collector(desk.kube):
            await passes(desk)
            await serve(desk, "v1", "v2")
            await passes(desk)
            await desk.delete(V2, "toy", ORPHAN)
            await comes(lambda: is_gone(desk, V2, "toy"))
        async with collector(desk.kube):
            await passes(desk)
            assert "ownerReferences" not in (await desk.get(SECRETS, "child"))["metadata"]


async def test_nothing_is_deleted_for_an_owner_that_is_not_served_for_a_while(
    tmp_path: Path,
) -> None:
    async with collecting(tmp_path) as desk:
        await desk.create(CRDS, toys("v1"))
        await toy(desk, "child")
        await serve(desk)
        await passes(desk)
        await desk.patch(SECRETS, "child", {"metadata": {"labels": {"seen": "yes"}}})
        await passes(desk)
        assert await exists(desk, SECRETS, "child")
        await serve(desk, "v1")
        await passes(desk)
        await desk.delete(V1, "toy")
        await comes(lambda: is_gone(desk, SECRETS, "child"))


async def test_dependents_go_with_the_definition_of_their_owner(tmp_path: Path) -> None:
    async with desk_for(tmp_path, crd_cleanup.CONTROLLER) as desk:
        await desk.create(CRDS, toys("v1"))
        await toy(desk, "child")
        async with collector(desk.kube):
            await passes(desk)
            await desk.kube.delete(CRDS, "toys.example.com")
            await desk.settle()
            await comes(lambda: is_gone(desk, SECRETS, "child"))


async def test_kinds_that_come_and_go_at_once_do_not_keep_others_from_being_followed(
    tmp_path: Path,
) -> None:
    async with collecting(tmp_path) as desk:
        await desk.create(CRDS, toys("v1"))
        await serve(desk)
        await serve(desk, "v1")
        await toy(desk, "child")
        await desk.delete(V1, "toy")
        await comes(lambda: is_gone(desk, SECRETS, "child"))
