"""One resource of a node as a device plugin: it lists devices, and answers every Allocate alike.

Allocate does not say for which pod it is, and we do not guess: which cards a container sees comes
with its pod, through environment variables that admission has put into its spec. What is answered
here holds for every container of the node. Without admission a container sees no card at all.
"""

import asyncio
from collections.abc import AsyncIterator

from gpupool.agent.devices import Offer
from gpupool.contract.names import ENV_VISIBLE_DEVICES, VISIBLE_DEVICES_NONE
from kubeclient.kubeletapi.errors import Refusal
from kubeclient.kubeletapi.messages import (
    AllocateRequest,
    AllocateResponse,
    ContainerAllocateResponse,
    Device,
    DevicePluginOptions,
    ListAndWatchResponse,
    Mount,
    PreferredAllocationRequest,
    PreferredAllocationResponse,
    PreStartContainerRequest,
    PreStartContainerResponse,
)


class ResourcePlugin:
    def __init__(self, resource: str) -> None:
        self.resource = resource
        self._devices: tuple[Device, ...] = ()
        self._ids: frozenset[str] = frozenset()
        self._mounts: tuple[Mount, ...] = ()
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._leaves = 0
        self.followers = 0  # kubelets that follow our list: one, when all is well

    async def wait_wanted(self) -> None:
        """Until there is, or was, something to offer."""
        await self._wanted.wait()

    @property
    def is_wanted(self) -> bool:
        return self._wanted.is_set()

    def withdraw(self) -> None:
        """Leaves the resource to somebody else, until the next offer."""
        self._devices, self._ids = (), frozenset()
        self._wanted.clear()

    def set_mounts(self, mounts: tuple[Mount, ...]) -> None:
        """For containers that are allocated from now on."""
        self._mounts = mounts

    def offer(self, offer: Offer) -> None:
        if offer.devices == self._devices:
            return
        self._devices = offer.devices
        self._ids = frozenset(device.id for device in offer.devices)
        self._tell()
        self._wanted.set()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def leave(self) -> None:
        """Ends the lists that are followed. Who follows one takes all its devices for ill."""
        self._leaves += 1
        self._tell()

    async def options(self) -> DevicePluginOptions:
        return DevicePluginOptions()

    async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
        self.followers += 1
        leaves = self._leaves
        try:
            while leaves == self._leaves:
                changed = self._changed
                yield ListAndWatchResponse(self._devices)
                await changed.wait()
        finally:
            self.followers -= 1

    async def allocate(self, request: AllocateRequest) -> AllocateResponse:
        asked = {number for container in request.containers for number in container.device_ids}
        if unknown := asked - self._ids:
            shown = ", ".join(sorted(unknown)[:5])
            raise Refusal(f"{self.resource}: this node has no device {shown}")
        envs = {ENV_VISIBLE_DEVICES: VISIBLE_DEVICES_NONE}
        answer = ContainerAllocateResponse(envs, self._mounts)
        return AllocateResponse((answer,) * len(request.containers))

    async def preferred_allocation(
        self, request: PreferredAllocationRequest
    ) -> PreferredAllocationResponse:
        raise Refusal("any device is as good as another: their numbers mean nothing")

    async def pre_start_container(
        self, request: PreStartContainerRequest
    ) -> PreStartContainerResponse:
        return PreStartContainerResponse()
