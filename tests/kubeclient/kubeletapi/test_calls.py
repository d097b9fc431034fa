"""Both sides of the API over real sockets."""

import asyncio
import contextlib
import gc
import socket as sockets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeclient.kubeletapi.calling import channel_to
from kubeclient.kubeletapi.errors import BadSocketPath, Refusal, RpcFailed
from kubeclient.kubeletapi.messages import (
    HEALTHY,
    UNHEALTHY,
    AllocatableResourcesResponse,
    AllocateRequest,
    AllocateResponse,
    ContainerAllocateRequest,
    ContainerAllocateResponse,
    ContainerPreferredAllocationResponse,
    Device,
    DevicePluginOptions,
    ListAndWatchResponse,
    ListPodResourcesResponse,
    PodResources,
    PreferredAllocationRequest,
    PreferredAllocationResponse,
    PreStartContainerRequest,
    PreStartContainerResponse,
    RegisterRequest,
)
from kubeclient.kubeletapi.serving import (
    device_plugin_service,
    pod_resources_service,
    registration_service,
    serving,
)


class Plugin:
    """One device, whose health changes when the test says so."""

    def __init__(self) -> None:
        self.health = asyncio.Queue[str]()
        self.is_left = asyncio.Event()

    async def options(self) -> DevicePluginOptions:
        return DevicePluginOptions(preferred_allocation_available=True)

    async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
        try:
            while True:
                yield ListAndWatchResponse((Device("a", await self.health.get()),))
        finally:
            self.is_left.set()

    async def preferred_allocation(
        self, request: PreferredAllocationRequest
    ) -> PreferredAllocationResponse:
        return PreferredAllocationResponse((ContainerPreferredAllocationResponse(("a",)),))

    async def allocate(self, request: AllocateRequest) -> AllocateResponse:
        if request.containers[0].device_ids != ("a",):
            raise Refusal("there is only a")
        return AllocateResponse((ContainerAllocateResponse(envs={"X": "1"}),))

    async def pre_start_container(
        self, request: PreStartContainerRequest
    ) -> PreStartContainerResponse:
        return PreStartContainerResponse()


async def test_every_call_of_a_device_plugin_arrives(tmp_path: Path) -> None:
    socket = tmp_path / "p.sock"
    async with serving(socket, [device_plugin_service(Plugin())]), channel_to(socket) as plugin:
        assert (await plugin.options()).preferred_allocation_available
        asked = AllocateRequest((ContainerAllocateRequest(("a",)),))
        assert (await plugin.allocate(asked)).containers[0].envs == {"X": "1"}
        preferred = await plugin.preferred_allocation(PreferredAllocationRequest())
        assert preferred.containers[0].device_ids == ("a",)
        await plugin.pre_start_container(PreStartContainerRequest(("a",)))


async def test_a_watch_follows_the_devices_and_ends_on_both_sides(tmp_path: Path) -> None:
    served, socket = Plugin(), tmp_path / "p.sock"
    async with serving(socket, [device_plugin_service(served)]), channel_to(socket) as plugin:
        watch = plugin.list_and_watch()
        for health in (HEALTHY, UNHEALTHY, HEALTHY):
            served.health.put_nowait(health)
            assert (await anext(watch)).devices == (Device("a", health),)
        await watch.aclose()  # type: ignore[attr-defined]  # the kubelet ends it
        await asyncio.wait_for(served.is_left.wait(), 10)


async def test_a_plugin_that_goes_away_ends_the_watch(tmp_path: Path) -> None:
    served, socket = Plugin(), tmp_path / "p.sock"
    served.health.put_nowait(HEALTHY)
    async with channel_to(socket) as plugin:
        async with serving(socket, [device_plugin_service(served)]):
            watch = plugin.list_and_watch()
            await anext(watch)
        with pytest.raises((RpcFailed, StopAsyncIteration)):
            await anext(watch)
    assert not socket.exists()


async def test_a_call_that_has_arrived_is_answered_before_the_end(tmp_path: Path) -> None:
    """If Allocate fails, the kubelet rejects the pod for good."""
    has_arrived, may_answer = asyncio.Event(), asyncio.Event()

    async def register(_: RegisterRequest) -> None:
        has_arrived.set()
        await may_answer.wait()

    socket = tmp_path / "kubelet.sock"
    async with channel_to(socket) as kubelet:
        async with serving(socket, [registration_service(register)]):
            call = asyncio.create_task(kubelet.register(RegisterRequest()))
            await has_arrived.wait()
            asyncio.get_running_loop().call_later(0.1, may_answer.set)
        await call


async def test_a_refusal_arrives_in_the_words_of_go(tmp_path: Path) -> None:
    socket = tmp_path / "p.sock"
    async with serving(socket, [device_plugin_service(Plugin())]), channel_to(socket) as plugin:
        with pytest.raises(RpcFailed) as caught:
            await plugin.allocate(AllocateRequest((ContainerAllocateRequest(("b",)),)))
    assert str(caught.value) == "rpc error: code = Unknown desc = there is only a"


async def test_a_missing_socket_is_an_rpc_error(tmp_path: Path) -> None:
    async with channel_to(tmp_path / "none.sock") as kubelet:
        with pytest.raises(RpcFailed) as caught:
            await kubelet.register(RegisterRequest())
    assert caught.value.code == "Unavailable"


async def test_a_registration_arrives(tmp_path: Path) -> None:
    seen: list[RegisterRequest] = []

    async def register(request: RegisterRequest) -> None:
        if request.version != "v1beta1":
            raise Refusal("not of this version")
        seen.append(request)

    socket, request = tmp_path / "kubelet.sock", RegisterRequest("v1beta1", "p.sock", "a.b/c")
    async with serving(socket, [registration_service(register)]), channel_to(socket) as kubelet:
        await kubelet.register(request)
        with pytest.raises(RpcFailed, match="not of this version"):
            await kubelet.register(RegisterRequest("v2"))
    assert seen == [request]


async def test_pods_and_their_devices_can_be_listed(tmp_path: Path) -> None:
    pods = ListPodResourcesResponse((PodResources("p", "default"),))
    service = pod_resources_service(lambda: pods, AllocatableResourcesResponse)
    socket = tmp_path / "r.sock"
    async with serving(socket, [service]), channel_to(socket) as kubelet:
        assert await kubelet.pod_resources() == pods
        assert await kubelet.allocatable() == AllocatableResourcesResponse()


async def test_a_path_that_is_too_long_for_a_socket_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(BadSocketPath, match="may have 107 bytes"):
        async with serving(tmp_path / ("x" * 108), []):
            pass


async def test_a_socket_left_behind_is_replaced(tmp_path: Path) -> None:
    socket = tmp_path / "p.sock"
    socket.touch()
    async with serving(socket, [device_plugin_service(Plugin())]), channel_to(socket) as plugin:
        await plugin.options()


@pytest.mark.parametrize("turns", range(8))
async def test_a_server_that_is_cancelled_at_any_moment_is_stopped(
    tmp_path: Path, turns: int
) -> None:
    """gRPC breaks when the start of a server is cancelled: its tasks end with an error, and the
    server still runs when its event loop is closed."""

    async def serve() -> None:
        async with serving(tmp_path / "s.sock", []):
            await asyncio.Event().wait()

    broken: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: broken.append(about))
    task = asyncio.create_task(serve())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for _ in range(20):
        await asyncio.sleep(0)
    gc.collect()
    assert not broken
    assert not (tmp_path / "s.sock").exists()


@pytest.mark.parametrize("turns", range(6))
async def test_a_caller_that_comes_while_the_server_ends_is_sent_away(
    tmp_path: Path, turns: int
) -> None:
    """Between its accept and its first byte, nobody but the event loop knows a connection."""
    path = tmp_path / "p.sock"
    with sockets.socket(sockets.AF_UNIX) as caller:
        caller.setblocking(False)
        async with serving(path, [device_plugin_service(Plugin())]):
            caller.connect(str(path))
            for _ in range(turns):
                await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionResetError):  # not even accepted
                while await loop.sock_recv(caller, 1024):
                    pass


@pytest.mark.parametrize("turns", range(6))
async def test_a_server_that_is_cancelled_twice_does_not_listen_any_more(
    tmp_path: Path, turns: int
) -> None:
    async def serve() -> None:
        async with serving(tmp_path / "s.sock", []):
            has_begun.set()
            await asyncio.Event().wait()

    has_begun = asyncio.Event()
    task = asyncio.create_task(serve())
    await has_begun.wait()
    address = str(tmp_path / "again.sock")
    (tmp_path / "again.sock").hardlink_to(tmp_path / "s.sock")
    with sockets.socket(sockets.AF_UNIX) as caller:
        task.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with pytest.raises(OSError, match="refused"):
            caller.connect(address)


async def test_a_long_list_of_devices_arrives_whole(tmp_path: Path) -> None:
    """Longer than the windows of HTTP/2, which have to be opened again meanwhile."""
    devices = (Device("x" * 4_000_000, HEALTHY),)

    class Many(Plugin):
        async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
            yield ListAndWatchResponse(devices)

    socket = tmp_path / "p.sock"
    async with serving(socket, [device_plugin_service(Many())]), channel_to(socket) as plugin:
        assert [listed.devices async for listed in plugin.list_and_watch()] == [devices]


async def test_a_caller_that_reads_nothing_stops_the_list(tmp_path: Path) -> None:
    """Nothing piles up: a plugin that never ends its lists waits for its reader."""
    listed = 0

    class Endless(Plugin):
        async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
            nonlocal listed
            while True:
                yield ListAndWatchResponse((Device("x" * 100_000, HEALTHY),))
                listed += 1
                await asyncio.sleep(0)

    socket = tmp_path / "p.sock"
    async with serving(socket, [device_plugin_service(Endless())]), channel_to(socket) as plugin:
        await anext(plugin.list_and_watch())
        before = -1
        while listed != before:
            before = listed
            await plugin.options()  # the connection is not blocked by what nobody reads
        assert listed < 100
