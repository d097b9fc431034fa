"""Port-forward by channels in a WebSocket, as Python clients do it."""

import asyncio
import contextlib
from collections.abc import Mapping

from localkube.apiserver.request import WebSocket
from localkube.apiserver.subresources import channels
from localkube.apiserver.subresources.channels import ChannelProtocol, Channels, Data
from localkube.apiserver.subresources.forwarding import Target, forward, until_first

PROTOCOLS: Mapping[str, ChannelProtocol] = {
    "v4.channel.k8s.io": channels.V4,
    "v4.base64.channel.k8s.io": channels.V4_TEXT,
    "": channels.V4,
}

# Messages for one port that may wait for the pod to read them.
_WAITING = 16


class ChannelEnds:
    """The client's side of one port."""

    def __init__(self, client: Channels, channel: int) -> None:
        self._client = client
        self._channel = channel
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self._is_ignored = False

    async def take(self, data: bytes) -> None:
        if not self._is_ignored:
            await self._arrived.put(data)

    async def read(self) -> bytes:
        return await self._arrived.get()

    async def write(self, data: bytes) -> None:
        await self._client.send(self._channel, data)

    async def fail(self, problem: str) -> None:
        await self._client.send(self._channel + 1, problem.encode())

    def ignore_input(self) -> None:
        """Discards what the client sends: unread bytes would block the other ports."""
        self._is_ignored = True
        while not self._arrived.empty():
            self._arrived.get_nowait()


async def forward_channels(target: Target, ports: list[int], socket: WebSocket) -> None:
    client = Channels(socket, PROTOCOLS[socket.subprotocol])
    ends = [ChannelEnds(client, 2 * index) for index in range(len(ports))]
    for channel in range(2 * len(ports)):
        await client.send(channel, ports[channel // 2].to_bytes(2, "little"))
    await until_first(_forward_all(target, ports, ends), _listen(client, ends), client.wait_lost())


async def _forward_all(target: Target, ports: list[int], ends: list[ChannelEnds]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for port, end in zip(ports, ends, strict=True):
            tasks.create_task(_forward_port(target, port, end), name="port-forward")


async def _forward_port(target: Target, port: int, end: ChannelEnds) -> None:
    with contextlib.suppress(ConnectionResetError):
        problem = await forward(target, port, end)
        end.ignore_input()
        if problem is not None:
            await end.fail(problem)


async def _listen(client: Channels, ends: list[ChannelEnds]) -> None:
    while (message := await client.receive()) is not None:
        if isinstance(message, Data) and message.data:
            index, is_error = divmod(message.channel, 2)
            if not is_error and index < len(ends):
                await ends[index].take(message.data)
