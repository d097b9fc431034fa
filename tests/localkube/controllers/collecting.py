"""What tests of garbage collection share: a running collector, owners and dependents."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

from kubeclient.client import Kube
from kubeclient.errors import NotFound
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, SECRETS, Resource
from localkube.controllers.garbage import Garbage
from tests.localkube.controllers.desk import Desk, desk_for

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
    await comes(lambda: is_gone(desk, SECRETS, "marked"))


async def is_gone(desk: Desk, resource: Resource, name: str) -> bool:
    return not await exists(desk, resource, name)


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
