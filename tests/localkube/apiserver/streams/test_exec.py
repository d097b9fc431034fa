"""exec and attach with real processes, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import orjson
import pytest

from kubeclient.objects import Obj
from localkube.apiserver.http.limits import WireLimits
from localkube.node_streams import AttachOptions, ExecOptions, NodeRefusal
from tests.localkube.apiserver.http.websocket_client import (
    Rejected,
    WebSocketClient,
    websocket,
)
from tests.localkube.apiserver.http.wire_client import connected, eventually
from tests.localkube.apiserver.streams.process_node import ProcessNode
from tests.localkube.apiserver.streams.stream_app import POD_PATH, pod, streaming

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"
SUCCESS = {"metadata": {}, "status": "Success"}


def exec_path(*command: str, **flags: int) -> str:
    query = [("command", word) for word in command] + list(flags.items())
    return f"{POD_PATH}/exec?{urlencode(query)}"


@asynccontextmanager
async def executing(
    node: ProcessNode, path: str, subprotocol: str = V5, described: Obj | None = None
) -> AsyncIterator[WebSocketClient]:
    offered = [subprotocol] if subprotocol else []
    async with streaming(node, described) as server, websocket(server, path, offered) as client:
        yield client


async def all_channels(client: WebSocketClient) -> dict[int, bytes]:
    """What came on each channel until the server closed."""
    found: dict[int, bytes] = {}
    while (message := await client.receive()) is not None:
        assert isinstance(message, bytes)
        found[message[0]] = found.get(message[0], b"") + message[1:]
    return found


async def test_output_errors_and_success_have_their_channels() -> None:
    node = ProcessNode()
    path = exec_path("sh", "-c", "echo out; echo err >&2", stdout=1, stderr=1)
    async with executing(node, path) as client:
        assert await client.receive() == b"\x01"  # connected
        got = await all_channels(client)
        assert client.close_code == 1000
    assert (got[1], got[2]) == (b"out\n", b"err\n")
    assert orjson.loads(got[3]) == SUCCESS
    assert node.options == ExecOptions(
        container="c",
        command=("sh", "-c", "echo out; echo err >&2"),
        stdout=True,
        stderr=True,
    )
    assert [process.hang_ups for process in node.processes] == [1]


async def test_nothing_is_sent_before_the_program_has_started() -> None:
    """kubectl up to 1.33 drops what comes before it has made its streams, and complains of it."""
    node = ProcessNode()
    node.may_start.clear()
    async with executing(node, exec_path("echo", "out", stdout=1)) as client:
        await eventually(lambda: node.options is not None)
        client.ping(b"the first answer")
        assert await client.pong() == b"the first answer"
        node.may_start.set()
        assert await client.receive() == b"\x01"
        assert (await all_channels(client))[1] == b"out\n"


@pytest.mark.parametrize("subprotocol", [V5, V4])
async def test_the_exit_code_is_in_the_status(subprotocol: str) -> None:
    path = exec_path("sh", "-c", "exit 3", stdout=1)
    async with executing(ProcessNode(), path, subprotocol) as client:
        got = await all_channels(client)
    assert orjson.loads(got[3]) == {
        "metadata": {},
        "status": "Failure",
        "message": (
            "command terminated with non-zero exit code: command terminated with exit code 3"
        ),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
    }


@pytest.mark.parametrize(
    ("subprotocol", "code", "outcome"),
    [
        ("channel.k8s.io", 0, None),
        (
            "channel.k8s.io",
            3,
            b"command terminated with non-zero exit code: command terminated with exit code 3",
        ),
        ("", 0, None),
    ],
)
async def test_before_v4_the_outcome_is_text_or_nothing(
    subprotocol: str, code: int, outcome: bytes | None
) -> None:
    path = exec_path("sh", "-c", f"exit {code}", stdout=1)
    async with executing(ProcessNode(), path, subprotocol) as client:
        assert (await all_channels(client)).get(3) == outcome


async def test_the_text_protocols_are_base64() -> None:
    path = exec_path("cat", stdin=1, stdout=1)
    async with executing(ProcessNode(), path, "v4.base64.channel.k8s.io") as client:
        assert await client.receive() == "1"
        client.send("0aGVsbG8=")
        assert await client.receive() == "1aGVsbG8="


async def test_closing_stdin_alone_ends_a_reader() -> None:
    async with executing(ProcessNode(), exec_path("cat", stdin=1, stdout=1)) as client:
        client.send(b"\x00hello ")
        client.send(b"\x00world")
        client.send(b"\xff\x00")
        got = await all_channels(client)
    assert got[1] == b"hello world"
    assert orjson.loads(got[3]) == SUCCESS


async def test_much_data_goes_through_in_both_directions() -> None:
    async with executing(ProcessNode(), exec_path("cat", stdin=1, stdout=1)) as client:
        block = bytes(range(256)) * 128

        async def send() -> None:
            for _ in range(200):
                client.send(b"\x00" + block)
                await client.wire.writer.drain()
            client.send(b"\xff\x00")

        sending = asyncio.create_task(send())
        got = await all_channels(client)
        await sending
    assert got[1] == block * 200


async def test_a_process_that_does_not_read_slows_the_client_and_still_sees_it_leave() -> None:
    node = ProcessNode()
    async with streaming(node, limits=WireLimits(pong_s=0.05)) as server:
        path = exec_path("sleep", "1000", stdin=1, stdout=1)
        async with websocket(server, path, [V5]) as client:
            sent = 0
            try:
                while True:
                    client.send(b"\x00" + b"x" * 100_000)
                    sent += 1
                    async with asyncio.timeout(0.3):
                        await client.wire.writer.drain()
            except TimeoutError:
                pass
            assert sent < 300
        await eventually(lambda: [process.hang_ups for process in node.processes] == [1])


async def test_a_client_that_leaves_hangs_up_the_process() -> None:
    node = ProcessNode()
    async with streaming(node) as server:
        path = exec_path("sleep", "1000", stdout=1)
        async with websocket(server, path, [V5]) as client:
            await client.receive()
            await eventually(lambda: bool(node.processes))
        await eventually(lambda: node.processes[0].hang_ups == 1)
        assert await node.processes[0].wait() != 0


async def test_a_client_that_closes_hangs_up_the_process() -> None:
    node = ProcessNode()
    async with executing(node, exec_path("sleep", "1000", stdout=1)) as client:
        await client.receive()
        client.close()
        await client.receive()
        await eventually(lambda: bool(node.processes) and node.processes[0].hang_ups == 1)


async def test_a_terminal_has_a_size_and_no_stderr() -> None:
    node = ProcessNode()
    script = "read line; stty size; echo err >&2; exit 7"
    path = exec_path("sh", "-c", script, stdin=1, stdout=1, stderr=1, tty=1)
    async with executing(node, path) as client:
        await client.receive()
        client.send(b'\x04{"Width":101,"Height":33}')
        client.send(b"\x04not a size")
        client.send(b'\x04{"Width":-1,"Height":99999999}')
        client.send(b"\x00go\r")
        got = await all_channels(client)
    assert b"33 101\r\n" in got[1]
    assert b"err\r\n" in got[1]
    assert 2 not in got
    assert orjson.loads(got[3])["details"]["causes"][0]["message"] == "7"
    assert isinstance(node.options, ExecOptions)
    assert (node.options.tty, node.options.stderr) == (True, False)


async def test_a_refusal_of_the_node_is_the_outcome() -> None:
    node = ProcessNode()
    node.refusal = NodeRefusal('unable to upgrade connection: container not found ("c")')
    async with executing(node, exec_path("true", stdout=1)) as client:
        got = await all_channels(client)
    status = orjson.loads(got[3])
    assert (status["status"], status["reason"]) == ("Failure", "InternalError")
    assert status["message"] == (
        'Internal error occurred: unable to upgrade connection: container not found ("c")'
    )


async def test_older_clients_learn_in_the_handshake_that_nothing_runs() -> None:
    described = pod()
    described["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}
    with pytest.raises(Rejected) as rejected:
        async with executing(ProcessNode(), exec_path("true", stdout=1), V4, described):
            pass
    assert rejected.value.status == 500
    assert b'container not found (\\"c\\")' in rejected.value.body


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_a_websocket_there_is_no_exec(method: str) -> None:
    async with streaming(ProcessNode()) as server, connected(server) as wire:
        wire.request(method, exec_path("true", stdout=1))
        answer = await wire.answer()
    assert answer.status == 400
    assert orjson.loads(answer.body)["message"] == "Upgrade request required"


@pytest.mark.parametrize(
    ("path", "described", "message"),
    [
        (
            exec_path("true", stdout=1),
            pod("a", "b"),
            "a container name must be specified for pod p, choose one of: [a b]",
        ),
        (exec_path("true"), pod(), "you must specify at least 1 of stdin, stdout, stderr"),
        (exec_path(stdout=1), pod(), "you must specify at least one command for the container"),
        (f"{POD_PATH}/attach?container=q", pod(), "container q is not valid for pod p"),
    ],
)
async def test_bad_requests_are_refused_before_the_upgrade(
    path: str, described: Obj, message: str
) -> None:
    with pytest.raises(Rejected) as rejected:
        async with executing(ProcessNode(), path, V5, described):
            pass
    assert rejected.value.status == 400
    assert orjson.loads(rejected.value.body)["message"] == message


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
async def test_a_pod_without_a_node_has_no_host(subresource: str) -> None:
    async with streaming(None) as server, connected(server) as wire:
        wire.request("GET", f"{POD_PATH}/{subresource}?command=ls&stdout=1")
        answer = await wire.answer()
    assert answer.status == 400
    assert orjson.loads(answer.body)["message"] == "pod p does not have a host assigned"


async def test_attaching_talks_to_the_container_and_its_end_is_success() -> None:
    node = ProcessNode()
    path = f"{POD_PATH}/attach?stdin=true&stdout=true"
    async with executing(node, path) as client:
        await client.receive()
        client.send(b"\x00hello")
        assert await client.receive() == b"\x01hello"
        client.send(b"\xff\x00")
        got = await all_channels(client)
    assert orjson.loads(got[3]) == SUCCESS
    assert node.options == AttachOptions(container="c", stdin=True, stdout=True)
