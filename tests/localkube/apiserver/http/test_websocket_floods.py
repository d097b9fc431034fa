"""Very many small frames, and messages without an end."""

import asyncio
import tracemalloc

import pytest

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.protocol import HttpConnection
from localkube.apiserver.request import Handler, Reply, Request, Upgrade, WebSocket
from tests.faults.loop_watchdog import Watchdog
from tests.localkube.apiserver.http.memory_wire import MemoryTransport, Tasks
from tests.localkube.apiserver.http.test_websocket import HANDSHAKE, echoing, masked
from tests.localkube.apiserver.http.wire_client import PATIENCE_S, eventually


async def _opened(handler: Handler, tasks: Tasks) -> tuple[HttpConnection, MemoryTransport]:
    transport = MemoryTransport()
    connection = HttpConnection(handler, WireLimits(), tasks)
    connection.connection_made(transport)
    connection.data_received(HANDSHAKE.encode())
    await eventually(lambda: transport.written.startswith(b"HTTP/1.1 101"))
    return connection, transport


@pytest.mark.parametrize("opcode", [0x89, 0x8A, 0x82, 0x81], ids=["ping", "pong", "data", "text"])
async def test_many_small_frames_in_one_piece_leave_the_loop_to_others(opcode: int) -> None:
    tasks = Tasks()
    connection, transport = await _opened(echoing, tasks)
    with Watchdog().watching() as watchdog:
        asyncio.get_running_loop().call_soon(connection.data_received, masked(opcode, b"") * 40_000)
        await eventually(lambda: transport.is_reading_paused)
        await eventually(lambda: not transport.is_reading_paused)
    assert not watchdog.stalls, watchdog.stalls
    connection.connection_lost(None)
    await tasks.settle()


async def test_a_program_that_ignores_what_it_receives_leaves_the_loop_to_others() -> None:
    heard = 0

    async def ignoring(socket: WebSocket) -> None:
        nonlocal heard
        while await socket.receive() is not None:
            heard += 1

    async def handler(_: Request) -> Reply:
        return Upgrade(("",), ignoring)

    tasks = Tasks()
    connection, _ = await _opened(handler, tasks)
    with Watchdog().watching() as watchdog:
        asyncio.get_running_loop().call_soon(connection.data_received, masked(0x82, b"x") * 40_000)
        await eventually(lambda: heard == 40_000)
    assert not watchdog.stalls, watchdog.stalls
    connection.connection_lost(None)
    await tasks.settle()


@pytest.mark.parametrize("piece", [b"", b"x"])
async def test_a_message_in_endless_small_pieces_takes_no_more_memory_than_it_says(
    piece: bytes,
) -> None:
    tasks = Tasks()
    connection, transport = await _opened(echoing, tasks)
    connection.data_received(masked(0x02, b"x"))
    tracemalloc.start()
    try:
        for _ in range(20):
            connection.data_received(masked(0x00, piece) * 1_000)
            await eventually(lambda: not transport.is_reading_paused)
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()
    connection.data_received(masked(0x80, b"y"))
    await eventually(lambda: transport.written.endswith(b"xy"))
    connection.connection_lost(None)
    await tasks.settle()
    assert tasks.budget.held == 0


async def test_unfinished_messages_of_all_clients_share_one_limit() -> None:
    tasks = Tasks()
    opened = [await _opened(echoing, tasks) for _ in range(3)]
    begun = masked(0x02, b"x" * 125) + masked(0x00, b"x" * 125) * 3_000
    for connection, transport in opened:
        connection.data_received(begun)
        await eventually(lambda transport=transport: not transport.is_reading_paused)  # type: ignore[misc]
    told = [b"too many large messages" in transport.written for _, transport in opened]
    assert told == [False, False, True]
    for connection, _ in opened:
        connection.connection_lost(None)
    await tasks.settle()
    assert tasks.budget.held == 0


async def test_what_arrived_before_a_client_was_lost_is_still_received() -> None:
    heard: list[bytes | str] = []
    ended = asyncio.Event()

    async def listening(socket: WebSocket) -> None:
        while (message := await socket.receive()) is not None:
            heard.append(message)
        ended.set()

    async def handler(_: Request) -> Reply:
        return Upgrade(("",), listening)

    tasks = Tasks()
    connection, _ = await _opened(handler, tasks)
    connection.data_received(masked(0x82, b"a") * 20_000)
    connection.connection_lost(None)
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()
    assert len(heard) == 20_000
    await tasks.settle()
