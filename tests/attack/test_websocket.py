"""WebSockets of exec, attach and port-forward, with frames that nobody should send: the connection
ends, its process with it, and nothing else."""

import asyncio
import logging
import os
import random
from contextlib import suppress

import pytest

from localkube.apiserver.http.server import Server
from tests.attack.campaign import Campaign
from tests.attack.target import ANSWER_S
from tests.attack.websocket_frames import attempt
from tests.localkube.apiserver.http.wire_client import connected, eventually
from tests.localkube.apiserver.streams.process_node import ProcessNode
from tests.localkube.apiserver.streams.stream_app import POD_PATH, streaming

_PROTOCOLS = (
    *("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "channel.k8s.io"),
    *("v4.base64.channel.k8s.io", "base64.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"),
    *("portforward.k8s.io", "nobody", ""),
)
_STREAMS = (
    "exec?command=cat&stdin=true&stdout=true",
    "exec?command=sh&stdin=true&stdout=true&stderr=true",
    "exec?command=sh&stdin=true&stdout=true&tty=true",
    "exec?command=yes&stdout=true",
    "attach?stdin=true&stdout=true",
    "portforward?ports={port}",
    "portforward",
    "portforward?ports=1&ports=x&ports=99999",
    "log?follow=true",
)
_GROWTH_DESCRIPTORS = 4


def handshake(path: str, protocol: str) -> bytes:
    lines = [
        f"GET {POD_PATH}/{path} HTTP/1.1",
        "Host: localhost",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    if protocol:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def talk(server: Server, path: str, draw: random.Random) -> None:
    async with connected(server) as wire:
        with suppress(ConnectionError):
            wire.send(handshake(path, draw.choice(_PROTOCOLS)))
            if draw.random() < 0.7:  # otherwise it speaks before it is told that it may
                async with asyncio.timeout(ANSWER_S):
                    with suppress(asyncio.IncompleteReadError):
                        await wire.reader.readuntil(b"\r\n\r\n")
            for _ in range(draw.choice((0, 1, 3, 10))):
                wire.send(attempt(draw))
                await wire.writer.drain()
            if draw.random() < 0.5:  # and now and then it listens
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await wire.reader.read(1 << 16)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1000):
            writer.write(data)
    writer.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def all_ended(node: ProcessNode) -> None:
    """Every process that a connection had has been told that it ended."""
    await eventually(lambda: all(each.child.returncode is not None for each in node.processes))
    await node.end()  # closes what is unread
    node.processes.clear()


async def siege(attack: Campaign) -> None:
    behind = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = behind.sockets[0].getsockname()[1]
    node = ProcessNode([port])
    node.log_lines = [b"a line\n"]
    async with behind, streaming(node) as server:
        before = 0
        for step in attack.steps(short=12):
            dice = [random.Random(f"{step.draw.random()}") for _ in range(10)]
            paths = [draw.choice(_STREAMS).replace("{port}", str(port)) for draw in dice]
            talks = [talk(server, path, draw) for path, draw in zip(paths, dice, strict=True)]
            async with asyncio.timeout(6 * ANSWER_S):
                await asyncio.gather(*talks)
                await all_ended(node)
            if step.number == 0:  # all that is made once is there
                before = descriptors()
        await eventually(lambda: descriptors() - before <= _GROWTH_DESCRIPTORS)


@pytest.mark.timeout(900)
def test_no_frame_breaks_more_than_its_own_connection(
    attack: Campaign, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        asyncio.run(siege(attack))
    for record in caplog.records:
        if record.exc_info or record.levelno >= logging.ERROR:
            attack.note(f"{record.getMessage()}: {record.exc_info} {record.exc_text}")
    attack.end()
