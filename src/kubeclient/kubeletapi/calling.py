"""The client side: calls over a unix socket. Each call has a timeout and raises RpcFailed."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import grpc

from kubeclient.kubeletapi.errors import RpcFailed, rpc_failed
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
from kubeclient.wire import BadMessage, decode, encode, has_more_fields

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

# Whoever may write into the directory of sockets may be a plugin. A long answer is read in a
# thread, and one that lists for ever has one part in twenty of the time.
_LONG_BYTES = 32 * 1024
_MOST_FIELDS = 200_000  # as many devices as 4 MiB hold with names
_REST = 20.0
_REST_S = 0.05
_LONGEST_REST_S = 30.0

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
        stream: grpc.aio.UnaryStreamMultiCallable[Any, bytes] = self._channel.unary_stream(
            f"/{DEVICE_PLUGIN}/ListAndWatch",
            request_serializer=encode,
        )
        call = stream(Empty(), wait_for_ready=False)
        try:
            async for raw in call:
                began_s = time.monotonic()
                listed = await _decoded(ListAndWatchResponse, raw)
                rest_s = max(_REST_S, _REST * (time.monotonic() - began_s))
                yield listed
                await asyncio.sleep(min(rest_s, _LONGEST_REST_S))
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
        method: grpc.aio.UnaryUnaryMultiCallable[Any, bytes] = self._channel.unary_unary(
            path,
            request_serializer=encode,
        )
        try:
            raw = await method(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise rpc_failed(error) from error
        return await _decoded(answer, raw)


async def _decoded(kind: type[Answer], raw: bytes) -> Answer:
    """Raises RpcFailed."""
    try:
        if len(raw) <= _LONG_BYTES:
            return decode(kind, raw)
        return await asyncio.to_thread(_decoded_long, kind, raw)
    except BadMessage as error:
        raise RpcFailed("Internal", f"{kind.__name__}: {error}") from None


def _decoded_long(kind: type[Answer], raw: bytes) -> Answer:
    if has_more_fields(raw, _MOST_FIELDS):
        raise BadMessage(f"more than {_MOST_FIELDS} fields")
    return decode(kind, raw)


@contextlib.asynccontextmanager
async def channel_to(socket: Path) -> AsyncIterator[Channel]:
    """Connects at the first call."""
    channel = grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)
    try:
        yield Channel(channel)
    finally:
        await channel.close()
