"""Port-forward in both of its ways, to real listeners on the loopback."""

import asyncio
import hashlib
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import orjson
import pytest

from localkube.apiserver.http.limits import WireLimits
from tests.localkube.apiserver.http.spdy_client import SpdyClient, control
from tests.localkube.apiserver.http.websocket_client import (
    Rejected,
    WebSocketClient,
    websocket,
)
from tests.localkube.apiserver.http.wire_client import PATIENCE_S, connected, eventually
from tests.localkube.apiserver.streams.process_node import ProcessNode
from tests.localkube.apiserver.streams.stream_app import POD_PATH, streaming

TUNNEL = "SPDY/3.1+portforward.k8s.io"
PATH = f"{POD_PATH}/portforward"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks first, ends first, and never reads."""
    writer.write(b"hello")
    writer.close()


class Deaf:
    """Never reads, never speaks; tells when the other side is gone."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport
        try:
            while not writer.transport.is_closing():
                writer.write(b"\n")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass
        self.gone.set()
        writer.close()


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)  # type: ignore[arg-type]  # Talk
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def tunnel(*ports: int) -> AsyncIterator[SpdyClient]:
    async with (
        streaming(ProcessNode(ports)) as server,
        websocket(server, PATH, [TUNNEL]) as client,
    ):
        yield SpdyClient(client)


async def until(client: SpdyClient, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            assert await client.step()


async def test_bytes_go_both_ways_and_half_an_end_is_no_end() -> None:
    async with listening(echo) as port, tunnel(port) as client:
        data, error = client.pair(port)
        client.send(data, b"hello ")
        await until(client, lambda: client.data.get(data) == b"hello ")
        client.send(data, b"world")
        client.end(data)
        await until(client, lambda: {data, error} <= client.ended)
        assert client.data == {data: b"hello world", error: b""}
        assert {data, error} <= client.replied


async def test_many_connections_share_the_tunnel() -> None:
    async with listening(echo) as port, tunnel(port) as client:
        for round_ in range(3):  # ended ones make room for more than the limit in all
            pairs = [client.pair(port, f"{round_}-{n}") for n in range(100)]
            for data, _ in pairs:
                client.send(data, str(data).encode())
                client.end(data)
            await until(client, lambda: {s for p in pairs for s in p} <= client.ended)  # noqa: B023
            assert all(client.data[data] == str(data).encode() for data, _ in pairs)


async def test_much_data_neither_stalls_nor_changes() -> None:
    block = bytes(range(256)) * 128
    async with listening(echo) as port, tunnel(port) as client:
        data, error = client.pair(port)

        async def send() -> None:
            for _ in range(600):
                client.send(data, block)
                await client.socket.wire.writer.drain()
            client.end(data)

        sending = asyncio.create_task(send())
        received, digest = 0, hashlib.sha256()
        async with asyncio.timeout(3 * PATIENCE_S):
            while not {data, error} <= client.ended:
                assert await client.step()
                piece = client.data.pop(data, b"")
                received += len(piece)
                digest.update(piece)
        await sending
    assert received == 600 * len(block)
    assert digest.digest() == hashlib.sha256(block * 600).digest()


async def test_a_pod_that_ends_first_ends_both_streams() -> None:
    async with listening(greet) as port, tunnel(port) as client:
        data, error = client.pair(port)
        await until(client, lambda: {data, error} <= client.ended)
        assert client.data[data] == b"hello"


async def test_what_is_sent_to_a_pod_that_has_ended_holds_nobody_up() -> None:
    async with listening(greet) as port, listening(echo) as other, tunnel(port, other) as client:
        data, error = client.pair(port, "0")
        await until(client, lambda: {data, error} <= client.ended)
        for _ in range(100):
            client.send(data, b"x" * 100_000)
        client.reset(data)
        alive, _ = client.pair(other, "1")
        client.send(alive, b"still here")
        await until(client, lambda: client.data.get(alive) == b"still here")


async def test_a_refused_port_is_told_on_the_error_stream() -> None:
    async with tunnel() as client:
        data, error = client.pair(1)
        await until(client, lambda: error in client.ended and data in client.resets)
        assert client.data[error] == (
            b"error forwarding port 1 to pod p, uid u-1: nothing listens on port 1"
        )


async def test_resetting_the_data_stream_leaves_the_pod() -> None:
    deaf = Deaf()
    async with listening(deaf.talk) as port, tunnel(port) as client:
        data, error = client.pair(port)
        await until(client, lambda: bool(client.data.get(data)))
        client.reset(data)
        await until(client, lambda: error in client.ended)
        async with asyncio.timeout(PATIENCE_S):
            await deaf.gone.wait()


async def test_a_pod_that_does_not_read_slows_the_client_which_may_still_leave() -> None:
    deaf = Deaf()
    limits = WireLimits(pong_s=0.05)
    async with (
        listening(deaf.talk) as port,
        streaming(ProcessNode([port]), limits=limits) as server,
    ):
        async with websocket(server, PATH, [TUNNEL]) as socket:
            client = SpdyClient(socket)
            data, _ = client.pair(port)
            await until(client, lambda: bool(client.data.get(data)))
            sent = 0
            with suppress(TimeoutError):
                while True:
                    client.send(data, b"x" * 100_000)
                    sent += 1
                    async with asyncio.timeout(0.3):
                        await socket.wire.writer.drain()
            assert sent < 500
        async with asyncio.timeout(PATIENCE_S):
            await deaf.gone.wait()


@pytest.mark.parametrize(
    ("kind", "port"),
    [("data", "0"), ("data", "65536"), ("data", "x"), ("data", ""), ("video", "80"), ("", "80")],
)
async def test_streams_that_make_no_sense_are_refused(kind: str, port: str) -> None:
    async with tunnel() as client:
        stream = client.open(kind, port, "0")
        await until(client, lambda: client.resets == {stream: 3})
        assert stream not in client.replied


async def test_a_second_stream_of_the_same_kind_is_refused() -> None:
    async with tunnel() as client:
        client.open("data", 80, "0")
        second = client.open("data", 80, "0")
        await until(client, lambda: client.resets == {second: 3})


async def test_more_streams_than_allowed_are_refused() -> None:
    async with tunnel() as client:
        streams = [client.open("data", 80, str(n)) for n in range(257)]
        await until(client, lambda: client.resets == {streams[-1]: 3})


async def test_pings_are_answered() -> None:
    async with tunnel() as client:
        client.socket.send(control(6, (7).to_bytes(4)))
        await until(client, lambda: client.pings == [7])


async def test_breaking_the_protocol_ends_the_session() -> None:
    async with tunnel() as client:
        client.socket.send(struct.pack(">HHI", 0x8002, 1, 0))
        async with asyncio.timeout(PATIENCE_S):
            while await client.step():
                pass
        assert client.gone_away == 1


@pytest.mark.parametrize("second", [1, 2])
async def test_stream_ids_must_be_odd_and_grow(second: int) -> None:
    async with tunnel() as client:
        client.open("data", 80, "0")
        client._next_stream = second
        client.open("data", 80, "1")
        async with asyncio.timeout(PATIENCE_S):
            while await client.step():
                pass
        assert client.gone_away == 1


# Channels.


@asynccontextmanager
async def channelled(
    *ports: int, node: ProcessNode | None = None
) -> AsyncIterator[WebSocketClient]:
    path = f"{PATH}?ports={','.join(map(str, ports))}"
    async with (
        streaming(node or ProcessNode(ports)) as server,
        websocket(server, path, ["v4.channel.k8s.io"]) as client,
    ):
        for channel in range(2 * len(ports)):
            expected = bytes([channel]) + struct.pack("<H", ports[channel // 2])
            assert await client.receive() == expected
        yield client


async def test_channels_carry_each_port() -> None:
    async with listening(echo) as one, listening(echo) as two, channelled(one, two) as client:
        client.send(b"\x02second")
        assert await client.receive() == b"\x02second"
        client.send(b"\x00first")
        client.send(b"\x01an error channel is not ours to read")
        client.send(b"\x09no such channel")
        assert await client.receive() == b"\x00first"


async def test_the_websocket_ends_with_the_last_port() -> None:
    async with listening(greet) as one, channelled(one) as client:
        assert await client.receive() == b"\x00hello"
        assert await client.receive() is None
        assert client.close_code == 1000


async def test_a_refused_port_is_told_on_its_error_channel() -> None:
    async with listening(echo) as port, channelled(port, 1, node=ProcessNode([port])) as client:
        text = b"error forwarding port 1 to pod p, uid u-1: nothing listens on port 1"
        assert await client.receive() == b"\x03" + text
        client.send(b"\x02lost" * 100)
        client.send(b"\x00alive")
        assert await client.receive() == b"\x00alive"


async def test_a_client_that_leaves_leaves_the_pod() -> None:
    deaf = Deaf()
    async with listening(deaf.talk) as port, channelled(port) as client:
        await client.receive()
        client.close()
        async with asyncio.timeout(PATIENCE_S):
            await deaf.gone.wait()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", 'query parameter "port" is required'),
        (
            "?ports=abc",
            'cannot convert to []int32: strconv.ParseUint: parsing "abc": invalid syntax',
        ),
        (
            "?ports=80,70000",
            'cannot convert to []int32: strconv.ParseUint: parsing "70000": value out of range',
        ),
        ("?ports=0", 'port "0" must be > 0'),
    ],
)
async def test_bad_ports_are_refused(query: str, message: str) -> None:
    async with streaming(ProcessNode()) as server:
        with pytest.raises(Rejected) as rejected:
            async with websocket(server, PATH + query, ["v4.channel.k8s.io"]):
                pass
    assert rejected.value.status == 400
    assert orjson.loads(rejected.value.body)["message"] == message


async def test_without_a_websocket_there_is_no_port_forward() -> None:
    async with streaming(ProcessNode()) as server, connected(server) as wire:
        wire.request("POST", PATH, "Connection: Upgrade", "Upgrade: SPDY/3.1")
        assert (await wire.answer()).status == 400


async def test_nothing_is_left_when_the_server_closes() -> None:
    deaf = Deaf()
    async with listening(deaf.talk) as port:
        async with tunnel(port) as client:
            data, _ = client.pair(port)
            await until(client, lambda: bool(client.data.get(data)))
        await eventually(deaf.gone.is_set)
