"""One resource of a node as a device plugin: lists devices, and answers every Allocate the same.

The kubelet's Allocate call does not say for which pod it is. Plugins that guess (the oldest pod
with the right amount) can give a container another pod's card when two pods start at once. We do
not guess. Which cards a container sees is decided by the scheduler and written to the pod's
annotations; admission has put environment variables into the pod's spec that refer to these
annotations, and they override what is answered here. So the answer is the same for every container
of the node: no visible card, and the mounts that all GPU containers get. A container that missed
admission therefore sees no card at all, rather than all of them.
"""

import asyncio
from collections.abc import AsyncIterator

from gpupool.agent.devices import Offer
from gpupool.contract.names import (
    ENV_CARD_CHECK,
    ENV_VISIBLE_DEVICES,
    HELD_BACK,
    VISIBLE_DEVICES_NONE,
)
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

# Keeps a container from starting until the injector takes it away (injector.py).
HOLD_BACK = Mount(HELD_BACK, "/dev/null", read_only=True)


class ResourcePlugin:
    def __init__(self, resource: str) -> None:
        self.resource = resource
        self._devices: tuple[Device, ...] = ()
        self._ids: frozenset[str] = frozenset()
        self._mounts: tuple[Mount, ...] = ()
        self._refusal = ""
        self._card_check = ""
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        # How often `leave` was called. A stream ends when this differs from its value at the
        # stream's start; a flag would also end the streams of the next registration.
        self._leaves = 0
        self.followers = 0  # open ListAndWatch streams: one while the kubelet is connected

    async def wait_wanted(self) -> None:
        """Waits until there is something to offer. After the first offer it stays so, even with no
        device left: only `withdraw` ends it."""
        await self._wanted.wait()

    @property
    def is_wanted(self) -> bool:
        return self._wanted.is_set()

    def withdraw(self) -> None:
        """Stops offering, so that another plugin can have the resource, until the next `offer`."""
        # The streams stay open here: `registration` notices within a second and ends them.
        self._devices, self._ids = (), frozenset()
        self._wanted.clear()

    def set_answer(
        self, mounts: tuple[Mount, ...], refusal: str = "", card_check: str = ""
    ) -> None:
        """The mounts of containers that are allocated from now on, and what their limiter checks
        (`ways.card_check`); or why none is allocated."""
        self._mounts = mounts
        self._refusal = refusal
        self._card_check = card_check

    def offer(self, offer: Offer) -> None:
        # An empty first offer does not set `_wanted`, so a node without cards registers nothing.
        if offer.devices == self._devices:
            return
        self._devices = offer.devices
        self._ids = frozenset(device.id for device in offer.devices)
        self._wake_streams()
        self._wanted.set()

    def _wake_streams(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def leave(self) -> None:
        """Ends all ListAndWatch streams. The kubelet then takes our devices as unhealthy."""
        self._leaves += 1
        self._wake_streams()

    async def options(self) -> DevicePluginOptions:
        # Allocate is called once for a pod, and not when one of its containers starts again.
        return DevicePluginOptions(pre_start_required=True)

    async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
        self.followers += 1
        leaves = self._leaves
        try:
            while leaves == self._leaves:
                # Taken before the list is sent: a change while the kubelet receives the list sets
                # this event, and is not missed.
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
        if self._refusal:
            raise Refusal(f"{self.resource}: {self._refusal}")
        envs = {ENV_VISIBLE_DEVICES: VISIBLE_DEVICES_NONE}
        if self._card_check:
            envs[ENV_CARD_CHECK] = self._card_check
        answer = ContainerAllocateResponse(envs, self._mounts)
        # The protocol wants one answer for each container, in the order of the request.
        return AllocateResponse((answer,) * len(request.containers))

    async def preferred_allocation(
        self, request: PreferredAllocationRequest
    ) -> PreferredAllocationResponse:
        # `options` does not announce this call, so no kubelet makes it.
        raise Refusal("there is no preference: a device's id stands for no card")

    async def pre_start_container(
        self, request: PreStartContainerRequest
    ) -> PreStartContainerResponse:
        """Before every start of a container. One that starts while cards do not get into containers
        would run without its own: it is refused, and the kubelet tries again later."""
        if self._refusal:
            raise Refusal(f"{self.resource}: {self._refusal}")
        return PreStartContainerResponse()
