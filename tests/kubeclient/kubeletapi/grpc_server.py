"""A server of gRPC's own library at a unix socket, as plugins and kubelets have it."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"


@contextlib.asynccontextmanager
async def grpc_server(
    socket: Path, service: str, methods: Mapping[str, Handler]
) -> AsyncIterator["grpc.aio.Server"]:
    server = grpc.aio.server()
    handlers = grpc.method_handlers_generic_handler(service, dict(methods))
    server.add_generic_rpc_handlers((handlers,))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield server
    finally:
        await server.stop(grace=None)
