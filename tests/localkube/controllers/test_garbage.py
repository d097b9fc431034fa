"""Garbage collection: what is deleted with an owner, and which owners never count as gone."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from kubeclient.client import Kube
from kubeclient.errors import NoAnswer, NotFound
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, CRDS, REPLICA_SETS, SECRETS, Resource
from localkube.controllers import crd_cleanup
from localkube.controllers.garbage import Garbage
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import workload

FOREGROUND = {"propagationPolicy": "Foreground"}
BACKGROUND = {"propagationPolicy": "Background"}
ORPHAN = {"propagationPolicy": "Orphan"}
PATIENCE_S = 10


@contextlib.asynccontextmanager
async def collecting(directory: Path) -> AsyncIterator[Desk]:
    async with desk_for(directory) as desk, collector(desk.kube):
        yield desk


@contextlib.asynccontextmanager
async def collector(kube: Kube) -> AsyncIterator[None]:
    running = asyncio.create_task(Garbage(kube).run())
    try:
        yield
        assert not running.done(), "the collector has ended"
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def owned_by(*owners: Obj, blocking: bool = False, kind: str = "ConfigMap") -> list[Obj]:
    return [
        {
            "apiVersion": "v1",
            "kind": kind,
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocking,
        }
        for owner in owners
    ]


async def owner(desk: Desk, name: str = "owner") -> Obj:
    return await desk.create(CONFIG_MAPS, {"metadata": {"name": name}})


async def child(desk: Desk, references: list[Obj], name: str = "child", **more: object) -> Obj:
    metadata = {"name": name, "ownerReferences": references, **more}
    return await desk.create(SECRETS, {"metadata": metadata})


async def exists(desk: Desk, resource: Resource, name: str) -> bool:
    try:
        await desk.get(resource, name)
    except NotFound:
        return False
    return True


async def comes(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await look():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def passes(desk: Desk) -> None:
    """Waits until the collector has processed earlier changes: it collects a marker object last."""
    marker = await owner(desk, "marker")
    await child(desk, owned_by(marker), "marked")
    await desk.delete(CONFIG_MAPS, "marker")
    await comes(lambda: _gone(desk, SECRETS, "marked"))


async def _gone(desk: Desk, resource: Resource, name: str) -> bool:
    return not await exists(desk, resource, name)


async def test_dependents_follow_in_the_background(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)))
        await desk.delete(CONFIG_MAPS, "owner", BACKGROUND)
        assert not await exists(desk, CONFIG_MAPS, "owner")
        await comes(lambda: _gone(desk, SECRETS, "child"))


async def test_one_living_owner_is_enough(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        first, second = await owner(desk, "first"), await owner(desk, "second")
        await child(desk, owned_by(first, second))
        await desk.delete(CONFIG_MAPS, "first")

        async def forgotten() -> bool:
            found = await desk.get(SECRETS, "child")
            names = [each["name"] for each in found["metadata"]["ownerReferences"]]
            return names == ["second"]

        await comes(forgotten)
        await desk.delete(CONFIG_MAPS, "second")
        await comes(lambda: _gone(desk, SECRETS, "child"))


async def test_a_later_object_of_the_same_name_owns_nothing(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        first = await owner(desk)
        await desk.delete(CONFIG_MAPS, "owner")
        await owner(desk)
        await child(desk, owned_by(first))
        await comes(lambda: _gone(desk, SECRETS, "child"))
        assert await exists(desk, CONFIG_MAPS, "owner")


async def test_in_the_foreground_a_blocking_dependent_goes_first(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        references = owned_by(await owner(desk), blocking=True)
        await child(desk, references, finalizers=["example.com/hold"])
        await desk.delete(CONFIG_MAPS, "owner", FOREGROUND)

        async def marked() -> bool:
            return "deletionTimestamp" in (await desk.get(SECRETS, "child"))["metadata"]

        await comes(marked)
        await passes(desk)
        assert await exists(desk, CONFIG_MAPS, "owner")
        await desk.patch(SECRETS, "child", {"metadata": {"finalizers": None}})
        await comes(lambda: _gone(desk, CONFIG_MAPS, "owner"))


async def test_foreground_deletion_does_not_wait_for_dependents_that_do_not_block(
    tmp_path: Path,
) -> None:
    async with collecting(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)), finalizers=["example.com/hold"])
        await desk.delete(CONFIG_MAPS, "owner", FOREGROUND)
        await comes(lambda: _gone(desk, CONFIG_MAPS, "owner"))
        assert await exists(desk, SECRETS, "child")


async def test_the_foreground_reaches_grandchildren(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        middle = await child(desk, owned_by(await owner(desk), blocking=True))
        await child(desk, owned_by(middle, blocking=True, kind="Secret"), "grandchild")
        await desk.delete(CONFIG_MAPS, "owner", FOREGROUND)
        await comes(lambda: _gone(desk, CONFIG_MAPS, "owner"))
        assert not await exists(desk, SECRETS, "child")
        assert not await exists(desk, SECRETS, "grandchild")


async def test_orphaning_removes_the_owner_reference(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)))
        await desk.delete(CONFIG_MAPS, "owner", ORPHAN)
        await comes(lambda: _gone(desk, CONFIG_MAPS, "owner"))
        found = await desk.get(SECRETS, "child")
        assert "ownerReferences" not in found["metadata"]


async def test_an_owner_of_a_kind_that_is_not_served_never_counts_as_gone(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        made = await owner(desk)
        reference = owned_by(made)[0] | {"apiVersion": "example.com/v1", "kind": "Toy", "uid": "x"}
        await child(desk, [reference])
        await passes(desk)
        assert await exists(desk, SECRETS, "child")


async def test_an_owner_that_never_existed_counts_as_gone(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        made = await owner(desk)
        await child(desk, [owned_by(made)[0] | {"name": "nobody", "uid": "nothing"}])
        await comes(lambda: _gone(desk, SECRETS, "child"))


async def test_garbage_from_before_the_start_is_collected(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)))
        await desk.delete(CONFIG_MAPS, "owner")
        async with collector(desk.kube):
            await comes(lambda: _gone(desk, SECRETS, "child"))


async def test_kinds_with_other_groups_own_too(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        made = await desk.create(REPLICA_SETS, workload("web", replicas=0))
        reference = owned_by(made, kind="ReplicaSet")[0] | {"apiVersion": "apps/v1"}
        await child(desk, [reference])
        await passes(desk)
        assert await exists(desk, SECRETS, "child")
        await desk.delete(REPLICA_SETS, "web", BACKGROUND)
        await comes(lambda: _gone(desk, SECRETS, "child"))


# -- races -------------------------------------------------------------------------------------


class Meddling:
    """A transport that calls `meddle` before every request."""

    def __init__(self, kube: Kube, meddle: Callable[[str, str], Awaitable[None]]) -> None:
        self._inner = kube._transport
        self._meddle = meddle

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, bytes]:
        await self._meddle(method, path)
        return await self._inner.call(method, path, query=query, headers=headers, body=body)

    def stream(
        self, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(path, query=query, headers=headers)


async def test_orphaning_goes_on_while_dependents_are_deleted(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        references = owned_by(await owner(desk))
        left = {f"child-{number}" for number in range(6)}
        for name in left:
            await child(desk, references, name)

        async def meddle(method: str, path: str) -> None:
            """All but the first one that the collector patches go."""
            while method == "PATCH" and len(left) > 1:
                doomed = next(name for name in left if not path.endswith(name))
                left.discard(doomed)
                await desk.delete(SECRETS, doomed)

        async with collector(Kube(Meddling(desk.kube, meddle))):
            await desk.delete(CONFIG_MAPS, "owner", ORPHAN)
            await comes(lambda: _gone(desk, CONFIG_MAPS, "owner"))
            await passes(desk)
            assert "ownerReferences" not in (await desk.get(SECRETS, left.pop()))["metadata"]


async def test_an_owner_that_is_added_meanwhile_is_kept(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        first, second, third = [await owner(desk, name) for name in ("first", "second", "third")]
        await child(desk, owned_by(first, second))
        added = asyncio.Event()

        async def meddle(method: str, path: str) -> None:
            if method == "PATCH" and not added.is_set():
                added.set()
                change = {"metadata": {"ownerReferences": owned_by(first, second, third)}}
                await desk.patch(SECRETS, "child", change)

        async with collector(Kube(Meddling(desk.kube, meddle))):
            await desk.delete(CONFIG_MAPS, "first")

            async def pruned() -> bool:
                found = (await desk.get(SECRETS, "child"))["metadata"]["ownerReferences"]
                return [each["name"] for each in found] == ["second", "third"]

            await comes(pruned)


async def test_an_object_that_finds_an_owner_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        first, second = await owner(desk, "first"), await owner(desk, "second")
        await child(desk, owned_by(first))
        adopted = asyncio.Event()

        async def meddle(method: str, path: str) -> None:
            if method == "DELETE" and not adopted.is_set():
                adopted.set()
                change = {"metadata": {"ownerReferences": owned_by(second)}}
                await desk.patch(SECRETS, "child", change)

        async with collector(Kube(Meddling(desk.kube, meddle))):
            await desk.delete(CONFIG_MAPS, "first")
            await adopted.wait()
            await passes(desk)
            assert await exists(desk, SECRETS, "child")


async def test_kinds_that_cannot_be_read_are_asked_for_again(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        refusals = iter([True, True])

        async def meddle(method: str, path: str) -> None:
            if path == "/apis" and next(refusals, False):
                raise NoAnswer("the discovery does not answer")

        async with collector(Kube(Meddling(desk.kube, meddle))):
            await passes(desk)


async def test_an_object_that_breaks_the_collector_does_not_stop_it(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:

        async def meddle(method: str, path: str) -> None:
            if method == "DELETE" and path.endswith("/cursed"):
                raise ZeroDivisionError

        async with collector(Kube(Meddling(desk.kube, meddle))):
            await child(desk, owned_by(await owner(desk)), "cursed")
            await desk.delete(CONFIG_MAPS, "owner")
            await passes(desk)


# -- circles -----------------------------------------------------------------------------------


async def circle(desk: Desk, *names: str) -> None:
    """Each owns the next one, and the last one owns the first."""
    made = [await owner(desk, name) for name in names]
    for number, name in enumerate(names):
        change = {"metadata": {"ownerReferences": owned_by(made[number - 1], blocking=True)}}
        await desk.patch(CONFIG_MAPS, name, change)


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
async def test_a_circle_of_owners_can_be_deleted_in_the_foreground(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    async with collecting(tmp_path) as desk:
        await circle(desk, *names)
        await desk.delete(CONFIG_MAPS, "a", FOREGROUND)

        async def all_gone() -> bool:
            return not set(names) & set(await desk.names(CONFIG_MAPS))

        await comes(all_gone)


async def test_a_circle_still_waits_for_a_dependent_outside_of_it(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        await circle(desk, "a", "b")
        references = owned_by(await desk.get(CONFIG_MAPS, "a"), blocking=True)
        await child(desk, references, finalizers=["example.com/hold"])
        await desk.delete(CONFIG_MAPS, "a", FOREGROUND)
        await comes(lambda: _gone(desk, CONFIG_MAPS, "b"))
        await passes(desk)
        assert await exists(desk, CONFIG_MAPS, "a")
        await desk.patch(SECRETS, "child", {"metadata": {"finalizers": None}})
        await comes(lambda: _gone(desk, CONFIG_MAPS, "a"))


# -- custom kinds ------------------------------------------------------------------------------

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
        await comes(lambda: _gone(desk, SECRETS, "child"))


async def test_an_owner_can_be_orphaned_after_another_version_is_preferred(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        await desk.create(CRDS, toys("v1"))
        await toy(desk, "child")
        async with collector(desk.kube):
            await passes(desk)
            await serve(desk, "v1", "v2")
            await passes(desk)
            await desk.delete(V2, "toy", ORPHAN)
            await comes(lambda: _gone(desk, V2, "toy"))
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
        await comes(lambda: _gone(desk, SECRETS, "child"))


async def test_dependents_go_with_the_definition_of_their_owner(tmp_path: Path) -> None:
    async with desk_for(tmp_path, crd_cleanup.CONTROLLER) as desk:
        await desk.create(CRDS, toys("v1"))
        await toy(desk, "child")
        async with collector(desk.kube):
            await passes(desk)
            await desk.kube.delete(CRDS, "toys.example.com")
            await desk.settle()
            await comes(lambda: _gone(desk, SECRETS, "child"))


async def test_kinds_that_come_and_go_at_once_do_not_keep_others_from_being_followed(
    tmp_path: Path,
) -> None:
    async with collecting(tmp_path) as desk:
        await desk.create(CRDS, toys("v1"))
        await serve(desk)
        await serve(desk, "v1")
        await toy(desk, "child")
        await desk.delete(V1, "toy")
        await comes(lambda: _gone(desk, SECRETS, "child"))
