"""Python clients at the streams; they speak v4 channels, or ask for no protocol at all."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from localkube.apiserver.http.server import Server
from testbed.processes import free_port
from tests.localkube.apiserver.streams.process_node import ProcessNode
from tests.localkube.apiserver.streams.stream_app import pod, streaming

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore"),  # theirs, not ours
]


@pytest.fixture(autouse=True)
def _their_sockets_end_here() -> Iterator[None]:
    """What they leave open is not to be found by the next test."""
    yield
    gc.collect()


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[Server, int]]:
    """A server, and a port in its pod that echoes."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        async with streaming(ProcessNode([port])) as server:
            yield server, port


async def test_the_official_client_executes_and_forwards() -> None:
    from kubernetes import client
    from kubernetes.stream import portforward, stream

    def talk(url: str, remote: int) -> tuple[str, int, bytes]:
        configuration = client.Configuration(host=url)
        api = client.CoreV1Api(client.ApiClient(configuration))
        process = stream(
            api.connect_get_namespaced_pod_exec,
            "p",
            "default",
            command=["sh", "-c", "read x; echo got $x; exit 4"],
            stdin=True,
            stdout=True,
            stderr=True,
            _preload_content=False,
        )
        process.write_stdin("hello\n")
        process.run_forever(timeout=20)
        # A new one: `stream` changes the client that it is given.
        api = client.CoreV1Api(client.ApiClient(configuration))
        forward = portforward(
            api.connect_get_namespaced_pod_portforward, "p", "default", ports=str(remote)
        )
        pipe = forward.socket(remote)
        pipe.settimeout(60)  # a thread that waits for ever would hold up the end of the run
        pipe.sendall(b"ping" * 1_000)
        echoed = b""
        while len(echoed) < 4_000:
            echoed += pipe.recv(4_096)
        pipe.close()
        return process.read_stdout(), process.returncode, echoed

    async with echoing() as (server, port):
        out, code, echoed = await asyncio.to_thread(talk, f"http://127.0.0.1:{server.port}", port)
    assert (out, code) == ("got hello\n", 4)
    assert echoed == b"ping" * 1_000


async def test_kr8s_executes_and_forwards(tmp_path: Path) -> None:
    import kr8s.asyncio
    from kr8s.asyncio.objects import Pod

    config = tmp_path / "kubeconfig"
    async with echoing() as (server, port):
        config.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "clusters": [
                        {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}
                    ],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                }
            )
        )
        api = await kr8s.asyncio.api(kubeconfig=str(config))
        found = await Pod(pod(), api=api)
        ended = await found.exec(["sh", "-c", "echo out"])
        assert (ended.stdout, ended.returncode) == (b"out\n", 0)
        # Its own choice ("auto") is drawn blindly, and taken now and then.
        async with found.portforward(port, local_port=free_port()) as local:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(b"x" * 100_000)
            assert await reader.readexactly(100_000) == b"x" * 100_000
            writer.close()
