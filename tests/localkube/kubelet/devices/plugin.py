"""A device plugin for tests, over real gRPC. It answers as the test says, and records its calls."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from kubeclient.kubeletapi.calling import channel_to
from kubeclient.kubeletapi.errors import Refusal
from kubeclient.kubeletapi.messages import (
    API_VERSION,
    AllocateRequest,
    AllocateResponse,
    ContainerAllocateResponse,
    ContainerPreferredAllocationResponse,
    Device,
    DevicePluginOptions,
    ListAndWatchResponse,
    Mount,
    PreferredAllocationRequest,
    PreferredAllocationResponse,
    PreStartContainerRequest,
    PreStartContainerResponse,
    RegisterRequest,
)
from kubeclient.kubeletapi.serving import device_plugin_service, serving

RESOURCE = "example.com/thing"


class FakePlugin:
    def __init__(self, *ids: str, name: str = "a") -> None:
        self.name = name
        self.health = dict.fromkeys(ids, "Healthy")
        self.preferred: tuple[str, ...] = ()
        self.pre_start = False
        self.refusal = ""
        self.mounts: tuple[Mount, ...] = ()
        self.allocated: list[tuple[tuple[str, ...], ...]] = []
        self.pre_started: list[tuple[str, ...]] = []
        self._news = asyncio.Event()
        self.streams = 0  # that the kubelet listens to

    def set_health(self, ids: Iterable[str], health: str) -> None:
        self.health |= dict.fromkeys(ids, health)
        self._news.set()

    async def options(self) -> DevicePluginOptions:
        return DevicePluginOptions(self.pre_start, bool(self.preferred))

    async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
        self.streams += 1
        try:
            while True:
                self._news.clear()
                listed = (Device(id, health) for id, health in self.health.items())
                yield ListAndWatchResponse(tuple(listed))
                await self._news.wait()
        finally:
            self.streams -= 1

    async def preferred_allocation(
        self, request: PreferredAllocationRequest
    ) -> PreferredAllocationResponse:
        return PreferredAllocationResponse((ContainerPreferredAllocationResponse(self.preferred),))

    async def allocate(self, request: AllocateRequest) -> AllocateResponse:
        self.allocated.append(tuple(each.device_ids for each in request.containers))
        if self.refusal:
            raise Refusal(self.refusal)
        return AllocateResponse(
            tuple(
                ContainerAllocateResponse(
                    envs={"THINGS": ",".join(each.device_ids), "PLUGIN": self.name},
                    mounts=self.mounts,
                )
                for each in request.containers
            )
        )

    async def pre_start_container(
        self, request: PreStartContainerRequest
    ) -> PreStartContainerResponse:
        self.pre_started.append(request.device_ids)
        return PreStartContainerResponse()

    @contextlib.asynccontextmanager
    async def serving(self, directory: Path) -> AsyncIterator[None]:
        async with serving(directory / f"{self.name}.sock", [device_plugin_service(self)]):
            yield

    @contextlib.asynccontextmanager
    async def registered(self, directory: Path) -> AsyncIterator[None]:
        async with self.serving(directory):
            await register(directory, endpoint=f"{self.name}.sock")
            yield


async def register(
    directory: Path, endpoint: str, resource: str = RESOURCE, version: str = API_VERSION
) -> None:
    """Raises RpcFailed if the kubelet refuses."""
    async with channel_to(directory / "kubelet.sock") as kubelet:
        await kubelet.register(RegisterRequest(version, endpoint, resource))
