"""An API server of ours alone, without controllers or nodes, answering on a real socket."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from kubeclient.objects import Obj
from localkube.apiserver.request import User
from localkube.apiserver.security import certificates
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from localkube.node_streams import NodeStreams

# As whom the requests to the real server were made.
_RECORDED_ADMIN = User("admin", ("system:masters", "system:authenticated"), "admin")


class NoNodes:
    def streams(self, node: str) -> NodeStreams | None:
        return None

    def node_usage(self) -> dict[str, Obj]:
        return {}

    def pod_usage(self) -> dict[tuple[str, str], list[Obj]]:
        return {}


@dataclass(frozen=True, slots=True)
class Address:
    port: int
    token: str
    ca: Path


@contextmanager
def api_server(directory: Path, *, keeps_records: bool = True) -> Iterator[Address]:
    """Without its records, nothing changes an object behind a request's back."""
    directory.chmod(0o700)
    ready = threading.Event()
    addresses: list[Address] = []
    loop = uvloop.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        made = certificates.ensure(directory)
        tokens = StaticTokens()
        token = tokens.issue(_RECORDED_ADMIN)
        server = build(directory, made, tokens, NoNodes())
        http = await server.listen(0)
        await server.bootstrap(http.port)
        ca = directory / "ca-for-tests.crt"
        ca.write_bytes(made.ca_pem)
        addresses.append(Address(http.port, token, ca))
        records = asyncio.ensure_future(server.keep_records()) if keeps_records else None
        ready.set()
        await stop.wait()
        if records is not None:
            records.cancel()
        await http.close(grace_s=0.5)
        server.close()

    def run() -> None:
        try:
            loop.run_until_complete(main())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=run, name="api-server")
    thread.start()
    ready.wait()
    assert addresses, "the API server did not start: see the traceback above"
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
