"""The server side: services over a unix socket.

A service is a table of methods; each takes a message and returns one, or many for a stream. To
say no it raises Refusal, whose text the caller gets with the code Unknown, as from a Go server.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import grpc

from kubeclient.kubeletapi.errors import BadSocketPath, Refusal
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
from kubeclient.wire import decode, encode

REGISTRATION = "v1beta1.Registration"
DEVICE_PLUGIN = "v1beta1.DevicePlugin"
POD_RESOURCES = "v1.PodResourcesLister"

_LONGEST_SOCKET_PATH = 107  # bytes; the kernel's limit
_MAX_REQUEST_BYTES = 16 * 1024 * 1024  # a preferred allocation names every free device
_LAST_ANSWERS_S = 5.0  # calls in progress may finish; then streams are cut
_ALONE = ("grpc.so_reuseport", 0)


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


class Service(NamedTuple):
    name: str
    methods: dict[str, "grpc.RpcMethodHandler[Any, Any]"]


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
            "ListAndWatch": _stream(Empty, devices),
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
    limit = ("grpc.max_receive_message_length", most_bytes)
    server = grpc.aio.server(options=(limit, _ALONE))
    server.add_generic_rpc_handlers(
        tuple(grpc.method_handlers_generic_handler(s.name, s.methods) for s in services)
    )
    _remove(socket)
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as error:
        raise BadSocketPath(f"{socket}: cannot be listened on: {error}") from error
    # gRPC breaks when its start is cancelled, so a cancellation waits until the server runs.
    starting = asyncio.ensure_future(server.start())
    try:
        await asyncio.shield(starting)
        yield
    finally:
        await asyncio.wait((starting,))
        await server.stop(grace=_LAST_ANSWERS_S)
        _remove(socket)


def _remove(socket: Path) -> None:
    socket.unlink(missing_ok=True)


def _unary(
    request: type[Any], answer: Callable[[Any], Awaitable[Any]]
) -> "grpc.RpcMethodHandler[Any, Any]":
    async def method(message: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:
        try:
            return await answer(message)
        except Refusal as no:
            return await context.abort(grpc.StatusCode.UNKNOWN, str(no))

    return grpc.unary_unary_rpc_method_handler(
        method,
        request_deserializer=lambda raw: decode(request, raw),
        response_serializer=encode,
    )


def _stream(
    request: type[Any], answers: Callable[[Any], AsyncIterator[Any]]
) -> "grpc.RpcMethodHandler[Any, Any]":
    async def method(
        message: Any, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> AsyncIterator[Any]:
        try:
            async for answer in answers(message):
                yield answer
        except Refusal as no:
            await context.abort(grpc.StatusCode.UNKNOWN, str(no))

    return grpc.unary_stream_rpc_method_handler(
        method,
        request_deserializer=lambda raw: decode(request, raw),
        response_serializer=encode,
    )
