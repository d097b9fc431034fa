"""What servers of other makers do, and this client must bear."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

from kubeclient.kubeletapi import calling
from kubeclient.kubeletapi.calling import Channel, channel_to
from kubeclient.kubeletapi.errors import Refusal, RpcFailed
from kubeclient.kubeletapi.http2 import Connection
from kubeclient.kubeletapi.messages import RegisterRequest
from kubeclient.kubeletapi.serving import REGISTRATION, registration_service, serving
from tests.kubeclient.kubeletapi.grpc_server import Handler, grpc_server

EMPTY_MESSAGE = b"\0\0\0\0\0"
LAST_OF_ALL = 2**31 - 1
PING = b"\0\0\x08\6\0\0\0\0\0" + b"gpupool!"


def _goodbye(last: int, error: int = 0) -> bytes:
    return b"\0\0\x08\7\0\0\0\0\0" + struct.pack(">II", last, error)


class _Server:
    """Answers each call with `messages` and says `afterwards`, all in one piece."""

    def __init__(self, messages: bytes, afterwards: bytes) -> None:
        self._messages, self._afterwards = messages, afterwards
        self._tasks: list[asyncio.Task[None]] = []

    @contextlib.asynccontextmanager
    async def at(self, socket: Path) -> AsyncIterator[Channel]:
        server = await asyncio.start_unix_server(self._accept, str(socket))
        try:
            async with channel_to(socket) as channel:
                yield channel
        finally:
            server.close()
            await asyncio.gather(*self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        h2 = H2Connection(H2Configuration(client_side=False))
        h2.initiate_connection()
        while data := await reader.read(65536):
            for event in h2.receive_data(data):
                if isinstance(event, StreamEnded):
                    self._answer(h2, event.stream_id)
            writer.write(h2.data_to_send())
        writer.close()
        await writer.wait_closed()

    @property
    def connections(self) -> int:
        return len(self._tasks)

    def _answer(self, h2: H2Connection, number: int) -> None:
        h2.send_headers(number, [(":status", "200"), ("content-type", "application/grpc")])
        h2.send_data(number, self._messages)
        h2.send_headers(number, [("grpc-status", "0")], end_stream=True)
        h2._data_to_send += self._afterwards  # h2 would end the connection


async def test_an_answer_before_a_goodbye_counts(tmp_path: Path) -> None:
    """Go's servers send a PING after it, which h2 would take for a mistake."""
    server = _Server(EMPTY_MESSAGE, _goodbye(LAST_OF_ALL) + PING)
    async with server.at(tmp_path / "s") as plugin:
        await plugin.register(RegisterRequest())


async def test_calls_after_a_goodbye_have_a_new_connection(tmp_path: Path) -> None:
    server = _Server(EMPTY_MESSAGE, _goodbye(LAST_OF_ALL))
    async with server.at(tmp_path / "s") as plugin:
        await plugin.register(RegisterRequest())
        await plugin.register(RegisterRequest())
    assert server.connections == 2


async def test_a_channel_that_was_closed_makes_no_connection(tmp_path: Path) -> None:
    """A plugin may end while a pod waits for its answer; the next call comes too late."""
    server = _Server(EMPTY_MESSAGE, b"")
    async with server.at(tmp_path / "s") as plugin:
        await plugin.register(RegisterRequest())
        plugin.close()
        with pytest.raises(RpcFailed, match="code = Canceled"):
            await plugin.register(RegisterRequest())
    assert server.connections == 1


async def test_a_channel_that_is_closed_while_it_connects_has_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin, made = Channel(tmp_path / "s"), Connection(1000)

    async def connection(_: Path) -> Connection:
        plugin.close()
        return made

    monkeypatch.setattr(calling, "_connection", connection)
    with pytest.raises(RpcFailed, match="code = Canceled"):
        await plugin.register(RegisterRequest())
    assert made.is_over


async def test_a_connection_that_ends_with_an_error_fails_its_calls(tmp_path: Path) -> None:
    server = _Server(b"", _goodbye(LAST_OF_ALL, error=2))
    async with server.at(tmp_path / "s") as plugin:
        with pytest.raises(RpcFailed):
            await plugin.register(RegisterRequest())


async def test_calls_in_progress_are_answered_while_a_grpc_server_stops(tmp_path: Path) -> None:
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def register(_: bytes, context: object) -> bytes:
        has_begun.set()
        await may_end.wait()
        return b""

    handler: Handler = grpc.unary_unary_rpc_method_handler(register)
    async with (
        grpc_server(tmp_path / "s", REGISTRATION, {"Register": handler}) as server,
        channel_to(tmp_path / "s") as plugin,
    ):
        call = asyncio.create_task(plugin.register(RegisterRequest()))
        await has_begun.wait()
        stopping = asyncio.create_task(server.stop(grace=20))
        await _is_leaving(plugin)
        may_end.set()
        await call
        await stopping


async def _is_leaving(channel: Channel) -> None:
    async with asyncio.timeout(20):
        while channel._connection is not None and not channel._connection.is_leaving:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("words", ["no room: ", " no room", "no\0room", "\t"])
async def test_blanks_at_the_ends_of_words_do_not_end_the_connection(
    tmp_path: Path, words: str
) -> None:
    async def register(_: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return await context.abort(grpc.StatusCode.NOT_FOUND, words)

    handler: Handler = grpc.unary_unary_rpc_method_handler(register)
    async with (
        grpc_server(tmp_path / "s", REGISTRATION, {"Register": handler}),
        channel_to(tmp_path / "s") as plugin,
    ):
        with pytest.raises(RpcFailed) as refused:
            await plugin.register(RegisterRequest())
    assert (refused.value.code, refused.value.details) == ("NotFound", words)


async def test_one_call_has_one_answer(tmp_path: Path) -> None:
    server = _Server(EMPTY_MESSAGE * 3000, b"")
    async with server.at(tmp_path / "s") as plugin:
        with pytest.raises(RpcFailed, match="more than one message"):
            await plugin.register(RegisterRequest())


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        pytest.param("a\ud800b", "a?b", id="half a surrogate pair"),
        pytest.param("世" * 4000, "世" * 796, id="long in letters of nine bytes"),
        pytest.param("%" * 20_000, "%" * 2389, id="long in letters of three bytes"),
    ],
)
async def test_any_refusal_arrives_as_far_as_it_can_be_sent(
    tmp_path: Path, words: str, shown: str
) -> None:
    async def register(_: RegisterRequest) -> None:
        raise Refusal(words)

    async with (
        serving(tmp_path / "s", [registration_service(register)]),
        grpc.aio.insecure_channel(f"unix:{tmp_path / 's'}") as channel,
    ):
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        method = channel.unary_unary(f"/{REGISTRATION}/Register")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await method(b"", timeout=20)
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == shown
