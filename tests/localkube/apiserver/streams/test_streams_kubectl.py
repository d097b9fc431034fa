"""The real kubectl at the streams: what it does with them, and its exit codes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.http.server import Server
from testbed.find_kubectl import find_kubectl
from tests.localkube.apiserver.streams.process_node import ProcessNode
from tests.localkube.apiserver.streams.stream_app import pod, streaming

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(find_kubectl() is None, reason="no kubectl of 1.31 or newer"),
]

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Ended:
    code: int
    out: bytes
    err: bytes


class Kubectl:
    def __init__(self, server: Server, folder: Path) -> None:
        config = folder / "kubeconfig"
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
        self._folder = folder
        self._flags = [f"--kubeconfig={config}", f"--cache-dir={folder / 'cache'}"]

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        program = find_kubectl()
        assert program is not None
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            program,
            *self._flags,
            *arguments,
            cwd=self._folder,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> Ended:
        process = await self.start(*arguments)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate(stdin)
        assert process.returncode is not None
        return Ended(process.returncode, out, err)


@asynccontextmanager
async def kubectl_to(
    node: ProcessNode, folder: Path, described: Obj | None = None
) -> AsyncIterator[Kubectl]:
    async with streaming(node, described) as server:
        yield Kubectl(server, folder)


async def test_exec_gives_output_errors_and_exit_codes(tmp_path: Path) -> None:
    async with kubectl_to(ProcessNode(), tmp_path) as kubectl:
        ended = await kubectl("exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ended.code, ended.out) == (3, b"out\n")
    assert ended.err == b"err\ncommand terminated with exit code 3\n"


async def test_exec_passes_input_on_to_its_end(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20_000
    async with kubectl_to(ProcessNode(), tmp_path) as kubectl:
        ended = await kubectl("exec", "-i", "p", "--", "cat", stdin=data)
    assert (ended.code, ended.err) == (0, b"")
    assert ended.out == data


async def test_cp_copies_both_ways(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"content" * 100_000)
    there = tmp_path / "there"
    async with kubectl_to(ProcessNode(), tmp_path) as kubectl:
        to_pod = await kubectl("cp", "here", f"default/p:{there}")
        assert to_pod.code == 0, to_pod.err
        assert there.read_bytes() == b"content" * 100_000
        back = await kubectl("cp", f"default/p:{there}", "again")
        assert back.code == 0, back.err
    assert (tmp_path / "again").read_bytes() == b"content" * 100_000


async def test_attach_follows_until_the_end(tmp_path: Path) -> None:
    described = pod()
    described["spec"]["containers"][0]["stdin"] = True
    async with kubectl_to(ProcessNode(), tmp_path, described) as kubectl:
        ended = await kubectl("attach", "-i", "p", stdin=b"hello\n")
    assert ended.code == 0
    assert b"hello\n" in ended.out


async def test_refusals_are_told_in_kubernetes_words(tmp_path: Path) -> None:
    described = pod("a", "b")
    described["status"]["containerStatuses"][0]["state"] = {
        "waiting": {"reason": "ContainerCreating"}
    }
    async with kubectl_to(ProcessNode(), tmp_path, described) as kubectl:
        waiting = await kubectl("logs", "p", "-c", "a")
        unknown = await kubectl("exec", "p", "-c", "z", "--", "true")
    assert waiting.code == 1
    assert waiting.err == (
        b"Error from server (BadRequest): "
        b'container "a" in pod "p" is waiting to start: ContainerCreating\n'
    )
    assert unknown.code == 1
    assert b"container z" in unknown.err or b"container not found" in unknown.err


async def test_logs_are_shown(tmp_path: Path) -> None:
    node = ProcessNode()
    node.log_lines = [b"one\n", b"two\n"]
    async with kubectl_to(node, tmp_path) as kubectl:
        ended = await kubectl("logs", "p", "--tail=2", "--timestamps")
    assert (ended.code, ended.out) == (0, b"one\ntwo\n")
    assert node.log_options is not None
    assert (node.log_options.tail_lines, node.log_options.timestamps) == (2, True)


async def test_port_forward_carries_many_connections_and_much_data(tmp_path: Path) -> None:
    block = bytes(range(256)) * 40_000
    async with forwarding(tmp_path) as local:

        async def round_trip(size: int) -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(block[:size])
            writer.write_eof()
            echoed = await reader.read()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            return echoed == block[:size]

        async with asyncio.timeout(PATIENCE_S):
            for _ in range(3):
                assert all(await asyncio.gather(*(round_trip(1_000 * n) for n in range(20))))
            assert await round_trip(len(block))


@asynccontextmanager
async def forwarding(folder: Path) -> AsyncIterator[int]:
    """A local port that kubectl forwards to an echo server "in" the pod."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as listener:
        remote = listener.sockets[0].getsockname()[1]
        async with kubectl_to(ProcessNode([remote]), folder) as kubectl:
            process = await kubectl.start("port-forward", "--address=127.0.0.1", "p", f":{remote}")
            try:
                assert process.stdout is not None
                async with asyncio.timeout(PATIENCE_S):
                    first = (await process.stdout.readline()).decode()
                # Forwarding from 127.0.0.1:34567 -> 8080
                yield int(first.split(" -> ")[0].rpartition(":")[2])
            finally:
                process.kill()
                await process.communicate()
