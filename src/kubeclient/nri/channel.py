"""The bytes on the runtime's socket, as ttRPC messages and back. Pure.

One socket carries two connections, in frames of a connection's number, a length and so many bytes:
on connection 1 the runtime asks and the plugin answers, on connection 2 the other way round. Each
connection is a stream of ttRPC messages: a header of ten bytes, and the data. A message may be cut
into several frames anywhere.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

PLUGIN_SERVICE, RUNTIME_SERVICE = 1, 2  # the connections
REQUEST, RESPONSE = 1, 2  # the types of messages
MAX_DATA = 4 * 1024 * 1024  # of one message, in ttRPC and in NRI

_FRAME = struct.Struct(">II")  # connection, length
_HEADER = struct.Struct(">IIBB")  # length of the data, stream, type, flags
_MAX_FRAME = MAX_DATA + _HEADER.size


class BadFrame(ValueError):
    """What the peer sent is not NRI; the text says what it was."""


class Message(NamedTuple):
    connection: int
    stream: int  # an answer has the stream of its request
    type: int
    data: bytes


class Incoming:
    """Collects what was read from the socket, and returns the messages that are complete. What is
    kept is bounded: one frame, and one message for each connection."""

    def __init__(self) -> None:
        self._frames = bytearray()
        self._streams = {PLUGIN_SERVICE: bytearray(), RUNTIME_SERVICE: bytearray()}

    def feed(self, data: bytes) -> Iterator[Message]:
        """Raises BadFrame."""
        self._frames += data
        while len(self._frames) >= _FRAME.size:
            connection, length = _FRAME.unpack_from(self._frames)
            if length > _MAX_FRAME:
                raise BadFrame(f"a frame of {length} bytes, at most {_MAX_FRAME} are allowed")
            if connection not in self._streams:
                raise BadFrame(f"connection {connection}; there are 1 and 2")
            end = _FRAME.size + length
            if len(self._frames) < end:
                return
            self._streams[connection] += self._frames[_FRAME.size : end]
            del self._frames[:end]
            yield from self._messages(connection)

    def _messages(self, connection: int) -> Iterator[Message]:
        stream = self._streams[connection]
        while len(stream) >= _HEADER.size:
            length, number, type_, _flags = _HEADER.unpack_from(stream)
            if length > MAX_DATA:
                raise BadFrame(f"a message of {length} bytes, at most {MAX_DATA} are allowed")
            end = _HEADER.size + length
            if len(stream) < end:
                return
            data = bytes(stream[_HEADER.size : end])
            del stream[:end]
            yield Message(connection, number, type_, data)


def framed(message: Message) -> bytes:
    """Raises BadFrame if the data is too long."""
    if len(message.data) > MAX_DATA:
        raise BadFrame(f"a message of {len(message.data)} bytes, at most {MAX_DATA} are allowed")
    header = _HEADER.pack(len(message.data), message.stream, message.type, 0)
    length = len(header) + len(message.data)
    return _FRAME.pack(message.connection, length) + header + message.data
