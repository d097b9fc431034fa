"""The client side: calls over a unix socket. Each call has a timeout and raises RpcFailed."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

from kubeclient.kubeletapi.errors import RpcFailed
from kubeclient.kubeletapi.framing import failure, framed
from kubeclient.kubeletapi.http2 import Connection, Stream
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

_HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "localhost"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
]

# Whoever may write into the directory of sockets may be a plugin. A long answer is read in a
# thread, and one that lists for ever has one part in twenty of the time.
_LONG_BYTES = 32 * 1024
_MOST_FIELDS = 200_000  # as many devices as 4 MiB hold with names
_REST = 20.0
_REST_S = 0.05
_LONGEST_REST_S = 30.0

Answer = TypeVar("Answer")


class Channel:
    """Typed calls to the services at one socket. Connects at the first call, and again after the
    connection was lost."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._connection: Connection | None = None
        self._leaving: list[Connection] = []  # only calls in progress use them
        self._connecting = asyncio.Lock()
        self._is_closed = False

    def close(self) -> None:
        """For good: a call that comes later would make a connection that nobody ends."""
        self._is_closed = True
        for connection in (self._connection, *self._leaving):
            if connection is not None:
                connection.close()

    async def register(self, request: RegisterRequest) -> None:
        await self._call(f"/{REGISTRATION}/Register", request, Empty, DIAL_TIMEOUT_S)

    async def options(self) -> DevicePluginOptions:
        path = f"/{DEVICE_PLUGIN}/GetDevicePluginOptions"
        return await self._call(path, Empty(), DevicePluginOptions, DIAL_TIMEOUT_S)

    async def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]:
        """Complete lists of devices, the first at once; ends when the plugin ends. No timeout."""
        async with self._opened(f"/{DEVICE_PLUGIN}/ListAndWatch", Empty()) as stream:
            while (raw := await stream.message()) is not None:
                began_s = time.monotonic()
                listed = await _decoded(ListAndWatchResponse, raw)
                rest_s = max(_REST_S, _REST * (time.monotonic() - began_s))
                yield listed
                await asyncio.sleep(min(rest_s, _LONGEST_REST_S))
            _check(stream)

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
        try:
            async with asyncio.timeout(timeout_s), self._opened(path, request) as stream:
                raw = await stream.message()
                # Trailers follow the answer, and say whether it is one.
                if await stream.message() is not None:
                    raise RpcFailed("Internal", f"{path}: the answer has more than one message")
                _check(stream)
        except TimeoutError:
            raise RpcFailed("DeadlineExceeded", "context deadline exceeded") from None
        if raw is None:
            raise RpcFailed("Internal", f"{path}: the answer has no message")
        return await _decoded(answer, raw)

    @contextlib.asynccontextmanager
    async def _opened(self, path: str, request: Any) -> AsyncIterator[Stream]:
        """A call whose request is sent."""
        stream = (await self._connected()).open([(":path", path), *_HEADERS])
        try:
            # If it cannot be sent, the answer says why.
            with contextlib.suppress(RpcFailed):
                await stream.send(framed(encode(request)), is_last=True)
            yield stream
        finally:
            stream.forget()

    async def _connected(self) -> Connection:
        async with self._connecting:
            if (old := self._connection) is not None and old.is_leaving:
                left = (each for each in (*self._leaving, old) if not each.is_over)
                self._leaving, self._connection = list(left), None
            if not self._is_closed and (self._connection is None or self._connection.is_over):
                self._connection = await _connection(self._socket)
            # It may have been closed meanwhile.
            if self._is_closed or self._connection is None:
                self.close()
                raise RpcFailed("Canceled", "the client connection is closing")
            return self._connection


async def _connection(socket: Path) -> Connection:
    """Raises RpcFailed."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(DIAL_TIMEOUT_S):
            _, connection = await loop.create_unix_connection(
                lambda: Connection(MAX_MESSAGE_BYTES), str(socket)
            )
    except OSError as error:  # or TimeoutError, which is one
        why = str(error) or "no answer in time"
        raise RpcFailed("Unavailable", f"nobody answers at {socket}: {why}") from error
    return connection


def _check(stream: Stream) -> None:
    """Raises RpcFailed."""
    if (error := failure(stream.headers)) is not None:
        raise error


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
    channel = Channel(socket)
    try:
        yield channel
    finally:
        channel.close()
