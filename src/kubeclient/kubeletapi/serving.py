"""The server side: services over a unix socket.

A service is a table of methods; each takes a message and returns one, or many for a stream. To
say no it raises Refusal, whose text the caller gets with the code Unknown, as from a Go server.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kubeclient.kubeletapi.errors import BadSocketPath, Refusal, RpcFailed
from kubeclient.kubeletapi.framing import ending, framed
from kubeclient.kubeletapi.http2 import Connection, Stream
from kubeclient.kubeletapi.messages import (
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
from kubeclient.wire import BadMessage, decode, encode

log = logging.getLogger(__name__)

REGISTRATION = "v1beta1.Registration"
DEVICE_PLUGIN = "v1beta1.DevicePlugin"
POD_RESOURCES = "v1.PodResourcesLister"

_LONGEST_SOCKET_PATH = 107  # bytes; the kernel's limit
_MAX_REQUEST_BYTES = 16 * 1024 * 1024  # a preferred allocation names every free device
_LAST_ANSWERS_S = 5.0  # calls in progress may finish; then streams are cut
# Of the event loop, from a caller's connect to its connection. asyncio loses the socket of a caller
# who was accepted and has no connection yet when the server is closed (Python 3.11).
_ACCEPT_TURNS = 3
_BEGIN = [(":status", "200"), ("content-type", "application/grpc")]


class DevicePlugin(Protocol):
    async def options(self) -> DevicePluginOptions: ...

    def list_and_watch(self) -> AsyncIterator[ListAndWatchResponse]: ...

    async def preferred_allocation(
        self, request: PreferredAllocationRequest
    ) -> PreferredAllocationResponse: ...

    async def allocate(self, request: AllocateRequest) -> AllocateResponse: ...

    async def pre_start_container(
        self, request: PreStartContainerRequest
    ) -> PreStartContainerResponse: ...


class Method(NamedTuple):
    request: type[Any]
    answers: Callable[[Any], AsyncIterator[Any]]
    goes_on: bool = False  # until the caller ends it


class Service(NamedTuple):
    name: str
    methods: dict[str, Method]


def registration_service(register: Callable[[RegisterRequest], Awaitable[None]]) -> Service:
    async def answer(request: RegisterRequest) -> Empty:
        await register(request)
        return Empty()

    return Service(REGISTRATION, {"Register": _unary(RegisterRequest, answer)})


def device_plugin_service(plugin: DevicePlugin) -> Service:
    async def options(_: Empty) -> DevicePluginOptions:
        return await plugin.options()

    def devices(_: Empty) -> AsyncIterator[ListAndWatchResponse]:
        return plugin.list_and_watch()

    return Service(
        DEVICE_PLUGIN,
        {
            "GetDevicePluginOptions": _unary(Empty, options),
            "ListAndWatch": Method(Empty, devices, goes_on=True),
            "GetPreferredAllocation": _unary(
                PreferredAllocationRequest, plugin.preferred_allocation
            ),
            "Allocate": _unary(AllocateRequest, plugin.allocate),
            "PreStartContainer": _unary(PreStartContainerRequest, plugin.pre_start_container),
        },
    )


def pod_resources_service(
    list_pods: Callable[[], ListPodResourcesResponse],
    allocatable: Callable[[], AllocatableResourcesResponse],
) -> Service:
    async def pods(_: Empty) -> ListPodResourcesResponse:
        return list_pods()

    async def free(_: Empty) -> AllocatableResourcesResponse:
        return allocatable()

    return Service(
        POD_RESOURCES,
        {"List": _unary(Empty, pods), "GetAllocatableResources": _unary(Empty, free)},
    )


@contextlib.asynccontextmanager
async def serving(
    socket: Path, services: Sequence[Service], most_bytes: int = _MAX_REQUEST_BYTES
) -> AsyncIterator[None]:
    """Listens before it yields; removes the socket afterwards. Raises BadSocketPath.

    `most_bytes`: of one request.
    """
    if len(os.fsencode(socket)) > _LONGEST_SOCKET_PATH:
        raise BadSocketPath(
            f"{socket}: a socket's path may have {_LONGEST_SOCKET_PATH} bytes; "
            "use a directory with a shorter path"
        )
    calls = _Calls(services)
    _remove(socket)
    starting = asyncio.ensure_future(_listening(socket, lambda: calls.connection(most_bytes)))
    try:
        await asyncio.shield(starting)
        yield
    finally:
        # A start that is cancelled leaves a socket open, so a cancellation waits until it is over.
        if not starting.done():
            await asyncio.wait((starting,))
        _remove(socket)
        try:
            for _ in range(_ACCEPT_TURNS):
                await asyncio.sleep(0)
        finally:
            if starting.exception() is None:
                starting.result().close()
        await calls.end()


async def _listening(socket: Path, connection: Callable[[], Connection]) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_unix_server(connection, str(socket))
    except OSError as error:
        raise BadSocketPath(f"{socket}: cannot be listened on: {error}") from error


def _remove(socket: Path) -> None:
    socket.unlink(missing_ok=True)


def _unary(request: type[Any], answer: Callable[[Any], Awaitable[Any]]) -> Method:
    async def answers(message: Any) -> AsyncIterator[Any]:
        yield await answer(message)

    return Method(request, answers)


class _Calls:
    """Calls in progress, each a task."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._methods = {
            f"/{service.name}/{name}": method
            for service in services
            for name, method in service.methods.items()
        }
        self._connections: set[Connection] = set()
        self._tasks: dict[asyncio.Task[None], bool] = {}  # True: it ends by itself

    def connection(self, most_bytes: int) -> Connection:
        self._connections = {each for each in self._connections if not each.is_over}
        connection = Connection(most_bytes, self._opened)
        self._connections.add(connection)
        return connection

    async def end(self) -> None:
        """Calls that have arrived are answered. Streams stay until then: a caller whose stream ends
        may close the connection, and lose the answers."""
        if soon := [task for task, ends in self._tasks.items() if ends]:
            await asyncio.wait(soon, timeout=_LAST_ANSWERS_S)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for connection in self._connections:
            connection.close()

    def _opened(self, stream: Stream) -> None:
        path = dict(stream.headers).get(":path", "")
        method = self._methods.get(path)
        task = asyncio.create_task(_answer(stream, path, method))
        stream.failed = task.cancel  # type: ignore[assignment]  # whether it was in time is no matter
        self._tasks[task] = method is None or not method.goes_on
        task.add_done_callback(self._tasks.pop)


async def _answer(stream: Stream, path: str, method: Method | None) -> None:
    try:
        code, words = await _outcome(stream, path, method)
        stream.send_headers(ending(code, words), is_last=True)
    except RpcFailed:
        pass  # the caller is gone
    finally:
        stream.forget()


async def _outcome(stream: Stream, path: str, method: Method | None) -> tuple[str, str]:
    """How the call has ended: code and words."""
    stream.send_headers(_BEGIN)
    if method is None:
        return "Unimplemented", f"unknown method {path}"
    try:
        raw = await stream.message()
        async for answer in method.answers(decode(method.request, raw or b"")):
            await stream.send(framed(encode(answer)))
    except Refusal as no:
        return "Unknown", str(no)
    except BadMessage as error:
        return "Internal", f"{method.request.__name__}: {error}"
    except RpcFailed as error:
        return error.code, error.details
    except Exception as error:
        log.exception("a call failed", extra={"method": path})
        return "Unknown", f"{type(error).__name__}: {error}"
    return "OK", ""
