"""Kubernetes' channel protocols: several byte streams in one WebSocket.

A message is the number of its channel and then data. The binary protocols put the number into one
byte; the base64 ones are text and begin with a digit. From v5 on, 255 and a number close a channel.
"""

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass

from localkube.apiserver.request import WebSocket

_CLOSE = 255
_ZERO = ord("0")


@dataclass(frozen=True, slots=True)
class ChannelProtocol:
    is_text: bool = False
    can_close: bool = False  # one channel alone
    has_status: bool = False  # the outcome is a v1 Status; before v4 it is the words of a failure


V5 = ChannelProtocol(can_close=True, has_status=True)
V4 = ChannelProtocol(has_status=True)
V4_TEXT = ChannelProtocol(is_text=True, has_status=True)
OLD = ChannelProtocol()
OLD_TEXT = ChannelProtocol(is_text=True)


@dataclass(frozen=True, slots=True)
class Data:
    channel: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    channel: int


def decoded(protocol: ChannelProtocol, message: bytes | str) -> Data | Closed | None:
    """None for what says nothing: an empty message, or one that is not of this protocol."""
    raw = message.encode() if isinstance(message, str) else message
    if not raw:
        return None
    if protocol.can_close and raw[0] == _CLOSE:
        return Closed(raw[1]) if len(raw) == 2 else None
    if not protocol.is_text:
        return Data(raw[0], raw[1:])
    if raw[0] < _ZERO:
        return None
    try:
        return Data(raw[0] - _ZERO, b64decode(raw[1:], validate=True))
    except binascii.Error:
        return None


def encoded(protocol: ChannelProtocol, channel: int, data: bytes) -> bytes | str:
    if protocol.is_text:
        return f"{chr(_ZERO + channel)}{b64encode(data).decode()}"
    return bytes((channel,)) + data


class Channels:
    """A WebSocket that speaks one of these protocols."""

    def __init__(self, socket: WebSocket, protocol: ChannelProtocol) -> None:
        self.protocol = protocol
        self._socket = socket

    async def receive(self) -> Data | Closed | None:
        """None when the client has closed."""
        while (message := await self._socket.receive()) is not None:
            found = decoded(self.protocol, message)
            if found is not None:
                return found
        return None

    async def wait_lost(self) -> None:
        await self._socket.wait_lost()

    async def send(self, channel: int, data: bytes) -> None:
        await self._socket.send(encoded(self.protocol, channel, data))
