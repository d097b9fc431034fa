"""Garbage collection: what is deleted with an owner, and which owners never count as gone."""

import asyncio
from pathlib import Path

import pytest

from kubeclient.client import Kube
from kubeclient.errors import NoAnswer
from kubeclient.resources import CONFIG_MAPS, REPLICA_SETS, SECRETS
from tests.localkube.controllers.collecting import (
    BACKGROUND,
    FOREGROUND,
    ORPHAN,
    Meddling,
    child,
    collecting,
    collector,
    comes,
    exists,
    is_gone,
    owned_by,
    owner,
    passes,
)
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import workload


async def test_dependents_follow_in_the_background(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)))
        await desk.delete(CONFIG_MAPS, "owner", BACKGROUND)
        assert not await exists(desk, CONFIG_MAPS, "owner")
        await comes(lambda: is_gone(desk, SECRETS, "child"))


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
        await comes(lambda: is_gone(desk, SECRETS, "child"))


async def test_a_later_object_of_the_same_name_owns_nothing(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        first = await owner(desk)
        await desk.delete(CONFIG_MAPS, "owner")
        await owner(desk)
        await child(desk, owned_by(first))
        await comes(lambda: is_gone(desk, SECRETS, "child"))
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
        await comes(lambda: is_gone(desk, CONFIG_MAPS, "owner"))


async def test_foreground_deletion_does_not_wait_for_dependents_that_do_not_block(
    tmp_path: Path,
) -> None:
    async with collecting(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)), finalizers=["example.com/hold"])
        await desk.delete(CONFIG_MAPS, "owner", FOREGROUND)
        await comes(lambda: is_gone(desk, CONFIG_MAPS, "owner"))
        assert await exists(desk, SECRETS, "child")


async def test_the_foreground_reaches_grandchildren(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        middle = await child(desk, owned_by(await owner(desk), blocking=True))
        await child(desk, owned_by(middle, blocking=True, kind="Secret"), "grandchild")
        await desk.delete(CONFIG_MAPS, "owner", FOREGROUND)
        await comes(lambda: is_gone(desk, CONFIG_MAPS, "owner"))
        assert not await exists(desk, SECRETS, "child")
        assert not await exists(desk, SECRETS, "grandchild")


async def test_orphaning_removes_the_owner_reference(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)))
        await desk.delete(CONFIG_MAPS, "owner", ORPHAN)
        await comes(lambda: is_gone(desk, CONFIG_MAPS, "owner"))
        found = await desk.get(SECRETS, "child")
        assert "ownerReferences" not in found["metadata"]


async def test_an_owner_of_a_kind_that_is_not_served_never_counts_asis_gone(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        made = await owner(desk)
        reference = owned_by(made)[0] | {"apiVersion": "example.com/v1", "kind": "Toy", "uid": "x"}
        await child(desk, [reference])
        await passes(desk)
        assert await exists(desk, SECRETS, "child")


async def test_an_owner_that_never_existed_counts_asis_gone(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        made = await owner(desk)
        await child(desk, [owned_by(made)[0] | {"name": "nobody", "uid": "nothing"}])
        await comes(lambda: is_gone(desk, SECRETS, "child"))


async def test_garbage_from_before_the_start_is_collected(tmp_path: Path) -> None:
    async with desk_for(tmp_path) as desk:
        await child(desk, owned_by(await owner(desk)))
        await desk.delete(CONFIG_MAPS, "owner")
        async with collector(desk.kube):
            await comes(lambda: is_gone(desk, SECRETS, "child"))


async def test_kinds_with_other_groups_own_too(tmp_path: Path) -> None:
    async with collecting(tmp_path) as desk:
        made = await desk.create(REPLICA_SETS, workload("web", replicas=0))
        reference = owned_by(made, kind="ReplicaSet")[0] | {"apiVersion": "apps/v1"}
        await child(desk, [reference])
        await passes(desk)
        assert await exists(desk, SECRETS, "child")
        await desk.delete(REPLICA_SETS, "web", BACKGROUND)
        await comes(lambda: is_gone(desk, SECRETS, "child"))


# -- races -------------------------------------------------------------------------------------


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
            await comes(lambda: is_gone(desk, CONFIG_MAPS, "owner"))
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
        await comes(lambda: is_gone(desk, CONFIG_MAPS, "b"))
        await passes(desk)
        assert await exists(desk, CONFIG_MAPS, "a")
        await desk.patch(SECRETS, "child", {"metadata": {"finalizers": None}})
        await comes(lambda: is_gone(desk, CONFIG_MAPS, "a"))
