"""The API server alone, in a process of its own, for measuring. Writes its address as JSON."""

import asyncio
import signal
import sys
from pathlib import Path

import orjson
import uvloop

from kubeclient.objects import Obj
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from localkube.node_streams import NodeStreams


class NoNodes:
    def streams(self, node: str) -> NodeStreams | None:
        return None

    def node_usage(self) -> dict[str, Obj]:
        return {}

    def pod_usage(self) -> dict[tuple[str, str], list[Obj]]:
        return {}


async def main(directory: Path) -> None:
    made = certificates.ensure(directory)
    tokens = StaticTokens()
    token = tokens.issue(ADMIN)
    server = build(directory, made, tokens, NoNodes())
    http = await server.listen(0)
    await server.bootstrap(http.port)
    ca = directory / "bench-ca.crt"
    ca.write_bytes(made.ca_pem)
    address = {"port": http.port, "token": token, "ca": str(ca)}
    sys.stdout.buffer.write(orjson.dumps(address) + b"\n")
    sys.stdout.flush()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await http.close(grace_s=0.5)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
