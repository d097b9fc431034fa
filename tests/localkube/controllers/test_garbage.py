"""Garbage collection: what is deleted with an owner, and which owners never count as gone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, REPLICA_SETS, SECRETS, Resource
from localkube.controllers.garbage import Garbage
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import workload

FOREGROUND = {"propagationPolicy": "Foreground"}
BACKGROUND = {"propagationPolicy": "Background"}
ORPHAN = {"propagationPolicy": "Orphan"}
PATIENCE_S = 10


@contextlib.asynccontextmanager
async def collecting(directory: Path) -> AsyncIterator[Desk]:
    async with desk_for(directory) as desk:
        running = asyncio.create_task(Garbage(desk.kube).run())
        try:
            yield desk
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
        running = asyncio.create_task(Garbage(desk.kube).run())
        await comes(lambda: _gone(desk, SECRETS, "child"))
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def test_kinds_with_other_groups_own_too(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        made = await desk.create(REPLICA_SETS, workload("web", replicas=0))
        reference = owned_by(made, kind="ReplicaSet")[0] | {"apiVersion": "apps/v1"}
        await child(desk, [reference])
        await passes(desk)
        assert await exists(desk, SECRETS, "child")
        await desk.delete(REPLICA_SETS, "web", BACKGROUND)
        await comes(lambda: _gone(desk, SECRETS, "child"))
