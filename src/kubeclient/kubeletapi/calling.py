"""The client side: calls over a unix socket. Each call has a timeout and raises RpcFailed."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import grpc

from kubeclient.kubeletapi.errors import rpc_failed
from kubeclient.kubeletapi.messages import (
    MAX_MESSAGE_BYTES,
    AllocatableResourcesResponse,
    AllocateRequest,
    AllocateResponse,
    DevicePluginOptions,
    Empty,
    ListAndWatchResponse,
    ListPodResourcesResponse,
    PreferredAllocationRequest,
    PreferredAllocationResponse,
    PreStartContainerRequest,
    PreStartContainerResponse,
    RegisterRequest,
)
from kubeclient.kubeletapi.serving import DEVICE_PLUGIN, POD_RESOURCES, REGISTRATION
from kubeclient.wire import decode, encode

DIAL_TIMEOUT_S = 10.0
CALL_TIMEOUT_S = 60.0
PRE_START_TIMEOUT_S = 30.0

_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A new socket at the same path is another server: never share connections by address.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)

Answer = TypeVar("Answer")


class Channel:
    """Typed calls to the services at one socket."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def register(self, request: RegisterRequest) -> None:
        await self._call(f"/{REGISTRATION}/Register", request, Empty, DIAL_TIMEOUT_S)

    async def options(self) -> DevicePluginOptions:
        path = f"/{DEVICE_PLUGIN}/GetDevicePluginOptions"
        return await self._call(path, Empty(), DevicePluginOptions, DIAL_TIMEOUT_S)

    async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
        """Complete lists of devices, the first at once; ends when the plugin ends. No timeout."""
        stream = self._channel.unary_stream(
            f"/{DEVICE_PLUGIN}/ListAndWatch",
            request_serializer=encode,
            response_deserializer=lambda raw: decode(ListAndWatchResponse, raw),
        )
        call = stream(Empty(), wait_for_ready=False)
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise rpc_failed(error) from error
        finally:
            # The stream has no timeout: it would stay open after the reader has stopped.
            call.cancel()

    async def preferred_allocation(
        self, request: PreferredAllocationRequest
    ) -> PreferredAllocationResponse:
        path = f"/{DEVICE_PLUGIN}/GetPreferredAllocation"
        return await self._call(path, request, PreferredAllocationResponse)

    async def allocate(self, request: AllocateRequest) -> AllocateResponse:
        return await self._call(f"/{DEVICE_PLUGIN}/Allocate", request, AllocateResponse)

    async def pre_start_container(
        self, request: PreStartContainerRequest
    ) -> PreStartContainerResponse:
        path = f"/{DEVICE_PLUGIN}/PreStartContainer"
        return await self._call(path, request, PreStartContainerResponse, PRE_START_TIMEOUT_S)

    async def pod_resources(self) -> ListPodResourcesResponse:
        return await self._call(f"/{POD_RESOURCES}/List", Empty(), ListPodResourcesResponse)

    async def allocatable(self) -> AllocatableResourcesResponse:
        path = f"/{POD_RESOURCES}/GetAllocatableResources"
        return await self._call(path, Empty(), AllocatableResourcesResponse)

    async def _call(
        self, path: str, request: Any, answer: type[Answer], timeout_s: float = CALL_TIMEOUT_S
    ) -> Answer:
        method = self._channel.unary_unary(
            path,
            request_serializer=encode,
            response_deserializer=lambda raw: decode(answer, raw),
        )
        try:
            return await method(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise rpc_failed(error) from error


@contextlib.asynccontextmanager
async def channel_to(socket: Path) -> AsyncIterator[Channel]:
    """Connects at the first call."""
    channel = grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)
    try:
        yield Channel(channel)
    finally:
        await channel.close()
