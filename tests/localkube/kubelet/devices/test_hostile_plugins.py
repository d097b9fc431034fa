"""A pod with a hostPath can be a device plugin, and call the kubelet's socket: it stalls nobody."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from kubeclient.kubeletapi.calling import channel_to
from kubeclient.kubeletapi.errors import RpcFailed
from kubeclient.kubeletapi.messages import DevicePluginOptions
from kubeclient.kubeletapi.serving import DEVICE_PLUGIN, REGISTRATION
from kubeclient.wire import encode
from localkube.kubelet.devices import node_devices
from tests.faults.loop_watchdog import Watchdog
from tests.kubeclient.kubeletapi.grpc_server import Handler, grpc_server
from tests.localkube.kubelet.devices.plugin import FakePlugin, register
from tests.localkube.kubelet.devices.test_node_devices import node

EMPTY_DEVICE = b"\x0a\x00"
ALMOST_4_MIB = 2 * 1024 * 1024 - 1024


@contextlib.asynccontextmanager
async def _answering(socket: Path, listed: bytes) -> AsyncIterator[None]:
    """A plugin whose list is these very bytes."""

    async def options(request: bytes, context: object) -> bytes:
        return encode(DevicePluginOptions())

    async def list_and_watch(request: bytes, context: object) -> AsyncIterator[bytes]:
        yield listed
        await asyncio.Event().wait()

    methods: dict[str, Handler] = {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(options),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(list_and_watch),
    }
    async with grpc_server(socket, DEVICE_PLUGIN, methods):
        yield


async def test_a_list_of_two_million_devices_is_refused_and_holds_nobody(tmp_path: Path) -> None:
    socket = tmp_path / "a.sock"
    async with _answering(socket, EMPTY_DEVICE * ALMOST_4_MIB), channel_to(socket) as channel:
        refused = pytest.raises(RpcFailed, match="more than 200000 fields")
        with Watchdog().watching() as watchdog, refused:
            await asyncio.ensure_future(anext(channel.list_and_watch()))
    assert not watchdog.stalls, "\n".join(watchdog.stalls)


async def test_a_list_that_is_no_message_ends_the_plugin(tmp_path: Path) -> None:
    socket = tmp_path / "a.sock"
    async with _answering(socket, b"\xff"), channel_to(socket) as channel:
        with pytest.raises(RpcFailed, match="Internal"):
            await anext(channel.list_and_watch())


async def test_a_huge_registration_is_not_even_read(tmp_path: Path) -> None:
    async with (
        node(tmp_path),
        grpc.aio.insecure_channel(f"unix:{tmp_path}/kubelet.sock") as channel,
    ):
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        method = channel.unary_unary(f"/{REGISTRATION}/Register")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await method(b"\x78\x00" * 1_000_000)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_node_has_a_limited_number_of_resources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_devices, "_MOST_RESOURCES", 2)
    async with node(tmp_path), FakePlugin("t0").serving(tmp_path):
        for name in ("one", "two"):
            await register(tmp_path, endpoint="a.sock", resource=f"example.com/{name}")
        with pytest.raises(RpcFailed, match="have 2 resources already"):
            await register(tmp_path, endpoint="a.sock", resource="example.com/three")
