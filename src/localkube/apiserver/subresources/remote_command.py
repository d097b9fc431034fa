"""What exec and attach have in common: the streams between a client and a process.

Channels: 0 stdin, 1 stdout, 2 stderr, 3 the outcome, 4 the size of the terminal. The conversation
ends when the process has, and all of its output is sent; or when the client leaves.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec
import orjson

from kubeclient.objects import Obj
from localkube.apiserver.http import handshake
from localkube.apiserver.http.bodies import end
from localkube.apiserver.request import Request, Upgrade, WebSocket
from localkube.apiserver.status import bad_request, failure
from localkube.apiserver.subresources import channels
from localkube.apiserver.subresources.channels import (
    ChannelProtocol,
    Channels,
    Closed,
    Data,
)
from localkube.apiserver.subresources.containers import (
    chosen_container,
    container_status,
    refused,
)
from localkube.node_streams import NodeRefusal, NodeStreams, Process

STDIN, STDOUT, STDERR, OUTCOME, RESIZE = range(5)

PROTOCOLS: Mapping[str, ChannelProtocol] = {
    "v5.channel.k8s.io": channels.V5,
    "v4.channel.k8s.io": channels.V4,
    "v4.base64.channel.k8s.io": channels.V4_TEXT,
    "v3.channel.k8s.io": channels.OLD,
    "channel.k8s.io": channels.OLD,
    "base64.channel.k8s.io": channels.OLD_TEXT,
    "": channels.OLD,
}

# How long a process may still read what a client sent before it left.
_LAST_WORDS_S = 1.0

SUCCESS: Obj = {"metadata": {}, "status": "Success"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the client asked for. A tty has no stderr of its own."""

    container: str
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


class TerminalSize(msgspec.Struct, frozen=True, rename="pascal"):
    width: int
    height: int


def wanted(request: Request, pod: Obj, node: NodeStreams | None) -> tuple[Wanted, NodeStreams]:
    """Raises ApiError for all that can be refused before there is a WebSocket."""
    container = chosen_container(pod, request.text("container"))
    if node is None:
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    tty = request.flag("tty")
    wish = Wanted(
        container,
        stdin=request.flag("stdin"),
        stdout=request.flag("stdout"),
        stderr=request.flag("stderr") and not tty,
        tty=tty,
    )
    if not handshake.asks_for_websocket(request):
        raise bad_request("Upgrade request required")
    if not (wish.stdin or wish.stdout or wish.stderr):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    name = handshake.subprotocol(request.headers, tuple(PROTOCOLS))
    if name is not None and not PROTOCOLS[name].can_close and not _is_running(pod, container):
        # Clients of the older protocols look for failures in the handshake.
        raise failure(500, "InternalError", f'container not found ("{container}")')
    return wish, node


def _is_running(pod: Obj, container: str) -> bool:
    status = container_status(pod, container)
    return status is not None and "running" in (status.get("state") or {})


def conversation(
    wish: Wanted, start: Callable[[], Awaitable[Process]], outcome: Callable[[int], Obj]
) -> Upgrade:
    async def run(socket: WebSocket) -> None:
        client = Channels(socket, PROTOCOLS[socket.subprotocol])
        try:
            process = await start()
        except NodeRefusal as refusal:
            await _finish(client, refused(refusal).status)
            return
        try:
            # Tells the client that it is connected. Not before the start, which takes a moment:
            # kubectl up to 1.33 reads before it has made its streams, and complains of a message
            # that comes in between ("Unknown stream id 1").
            await client.send(_first_output(wish), b"")
            code = await _talk(client, process, wish)
            if code is not None:
                await _finish(client, outcome(code))
        finally:
            await process.hang_up()

    return Upgrade(tuple(PROTOCOLS), run)


def _first_output(wish: Wanted) -> int:
    if wish.stdout:
        return STDOUT
    return STDERR if wish.stderr else OUTCOME


async def _talk(client: Channels, process: Process, wish: Wanted) -> int | None:
    """The exit code; None when the client has left before."""
    speaking = asyncio.create_task(_speak(client, process, wish), name="stream-output")
    listening = asyncio.create_task(_listen(client, process, wish), name="stream-input")
    leaving = asyncio.create_task(client.wait_lost(), name="stream-lost")
    tasks = (speaking, listening, leaving)
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if leaving in done:
            # Input that has arrived is still delivered, if the process reads.
            await asyncio.wait(
                tasks[:2], timeout=_LAST_WORDS_S, return_when=asyncio.FIRST_COMPLETED
            )
        if speaking.done():
            return speaking.result()
        if listening.done():
            listening.result()
        return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _speak(client: Channels, process: Process, wish: Wanted) -> int:
    async with asyncio.TaskGroup() as tasks:
        if wish.stdout:
            tasks.create_task(_copy(process.stdout(), client, STDOUT), name="stream-stdout")
        if wish.stderr:
            tasks.create_task(_copy(process.stderr(), client, STDERR), name="stream-stderr")
    # After the end of both outputs: the outcome is the last message and must not overtake them.
    return await process.wait()


async def _copy(output: AsyncIterator[bytes], client: Channels, channel: int) -> None:
    try:
        async for data in output:
            await client.send(channel, data)
    except ConnectionResetError:
        pass  # the client has left; whoever listens to it knows
    finally:
        await end(output)


async def _listen(client: Channels, process: Process, wish: Wanted) -> None:
    while (message := await client.receive()) is not None:
        match message:
            case Data(channel=0, data=data) if wish.stdin:
                if data:
                    await process.write_stdin(data)
            case Closed(channel=0) if wish.stdin:
                await process.close_stdin()
            case Data(channel=4, data=data) if wish.tty:
                size = _size(data)
                if size is not None:
                    await process.resize(size.width, size.height)
            case _:
                pass


def _size(data: bytes) -> TerminalSize | None:
    try:
        size = msgspec.json.decode(data, type=TerminalSize)
    except msgspec.MsgspecError:
        return None
    fits = 0 < size.width < 2**16 and 0 < size.height < 2**16
    return size if fits else None


async def _finish(client: Channels, status: Obj) -> None:
    if client.protocol.has_status:
        await client.send(OUTCOME, orjson.dumps(status))
    elif status["status"] != "Success":
        await client.send(OUTCOME, status["message"].encode())
