"""Ours against gRPC's own library, over real sockets, in both directions."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from kubeclient.kubeletapi import http2
from kubeclient.kubeletapi.calling import channel_to
from kubeclient.kubeletapi.errors import Refusal, RpcFailed
from kubeclient.kubeletapi.messages import HEALTHY, Device, ListAndWatchResponse, RegisterRequest
from kubeclient.kubeletapi.serving import (
    DEVICE_PLUGIN,
    REGISTRATION,
    Method,
    Service,
    registration_service,
    serving,
)
from kubeclient.wire import encode
from tests.kubeclient.kubeletapi.grpc_server import Handler, grpc_server

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
PING = b"\0\0\x08\6\0\0\0\0\0" + b"gpupool!"
WORDS = "100 % größer\nals 世界"


@contextlib.asynccontextmanager
async def _registration(socket: Path, words: str = "") -> AsyncIterator[list[RegisterRequest]]:
    seen: list[RegisterRequest] = []

    async def register(request: RegisterRequest) -> None:
        if words:
            raise Refusal(words)
        seen.append(request)

    async with serving(socket, [registration_service(register)], most_bytes=1000):
        yield seen


async def _register(socket: Path, request: bytes) -> bytes:
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        method = channel.unary_unary(f"/{REGISTRATION}/Register")
        return await method(request, timeout=20)


async def test_a_caller_of_grpc_is_answered(tmp_path: Path) -> None:
    request = RegisterRequest("v1beta1", "p.sock", "a.b/c")
    async with _registration(tmp_path / "s") as seen:
        assert await _register(tmp_path / "s", encode(request)) == b""
    assert seen == [request]


async def test_a_refusal_reaches_grpc_in_any_letters(tmp_path: Path) -> None:
    async with _registration(tmp_path / "s", WORDS):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await _register(tmp_path / "s", b"")
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == WORDS


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        pytest.param(b"\x78\x00" * 501, grpc.StatusCode.RESOURCE_EXHAUSTED, id="too long"),
        pytest.param(b"\xff", grpc.StatusCode.INTERNAL, id="no message"),
    ],
)
async def test_a_bad_request_of_grpc_is_refused(
    tmp_path: Path, request_bytes: bytes, code: grpc.StatusCode
) -> None:
    async with _registration(tmp_path / "s") as seen:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await _register(tmp_path / "s", request_bytes)
    assert refused.value.code() is code
    assert not seen


async def test_an_unknown_method_is_unimplemented(tmp_path: Path) -> None:
    async with serving(tmp_path / "s", []):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await _register(tmp_path / "s", b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_an_error_of_a_service_is_told_and_ends_one_call_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: object) -> AsyncIterator[object]:
        yield 1 // 0

    method = Method(RegisterRequest, broken)
    async with serving(tmp_path / "s", [Service(REGISTRATION, {"Register": method})]):
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError, match="ZeroDivisionError"):
                await _register(tmp_path / "s", b"")
    assert "a call failed" in caplog.text


async def test_a_refusal_of_grpc_arrives_in_any_letters(tmp_path: Path) -> None:
    async def register(_: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return await context.abort(grpc.StatusCode.FAILED_PRECONDITION, WORDS)

    handler: Handler = grpc.unary_unary_rpc_method_handler(register)
    async with (
        grpc_server(tmp_path / "s", REGISTRATION, {"Register": handler}),
        channel_to(tmp_path / "s") as kubelet,
    ):
        with pytest.raises(RpcFailed) as refused:
            await kubelet.register(RegisterRequest())
    assert (refused.value.code, refused.value.details) == ("FailedPrecondition", WORDS)


async def test_a_stream_of_grpc_is_followed_to_its_end(tmp_path: Path) -> None:
    lists = [ListAndWatchResponse((Device("x" * size, HEALTHY),)) for size in (3_000_000, 1)]

    async def list_and_watch(_: bytes, context: object) -> AsyncIterator[bytes]:
        for each in lists:
            yield encode(each)

    handler: Handler = grpc.unary_stream_rpc_method_handler(list_and_watch)
    async with (
        grpc_server(tmp_path / "s", DEVICE_PLUGIN, {"ListAndWatch": handler}),
        channel_to(tmp_path / "s") as plugin,
    ):
        assert [each async for each in plugin.list_and_watch()] == lists


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", id="HTTP/1.1"),
        pytest.param(PREFACE + b"\0\0\1\0\0\0\0\0\0x", id="data of no stream"),
        pytest.param(b"\x00" * 100, id="zeros"),
    ],
)
async def test_a_peer_that_speaks_no_http2_is_cut_off_and_others_are_served(
    tmp_path: Path, said: bytes
) -> None:
    async with _registration(tmp_path / "s") as seen:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        writer.write(said)
        await asyncio.wait_for(reader.read(), 20)  # up to the end of the connection
        writer.close()
        await _register(tmp_path / "s", b"")
    assert len(seen) == 1


async def _ping(writer: asyncio.StreamWriter, times: int) -> None:
    for _ in range(times // 100):
        writer.write(PING * 100)
        await writer.drain()


async def test_a_peer_that_asks_for_ever_and_reads_nothing_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every PING must be answered: what is not read would pile up."""
    monkeypatch.setattr(http2, "_MOST_UNSENT_BYTES", 100_000)
    async with _registration(tmp_path / "s") as seen:
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(PREFACE + SETTINGS)
        with pytest.raises(ConnectionError):
            await _ping(writer, 200_000)
        writer.close()
        await _register(tmp_path / "s", b"")
    assert len(seen) == 1
