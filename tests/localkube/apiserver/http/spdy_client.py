"""The client's end of SPDY in a WebSocket, written from the draft and not from our own code."""

import struct
import zlib
from collections.abc import Mapping

from localkube.apiserver.http.spdy import DICTIONARY
from tests.localkube.apiserver.http.websocket_client import WebSocketClient


def control(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body


class Framer:
    def __init__(self) -> None:
        self._deflater = zlib.compressobj(zdict=DICTIONARY)

    def compressed(self, plain: bytes) -> bytes:
        return self._deflater.compress(plain) + self._deflater.flush(zlib.Z_SYNC_FLUSH)

    def block(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            plain += struct.pack(">I", len(name)) + name.encode()
            plain += struct.pack(">I", len(value)) + value.encode()
        return self.compressed(plain)

    def syn_stream(self, stream: int, headers: Mapping[str, str], flags: int = 0) -> bytes:
        return control(1, struct.pack(">IIH", stream, 0, 0) + self.block(headers), flags)


class SpdyClient:
    """Gathers what the server says of each stream."""

    def __init__(self, socket: WebSocketClient) -> None:
        self.socket = socket
        self.framer = Framer()
        self.data: dict[int, bytes] = {}
        self.replied: set[int] = set()
        self.ended: set[int] = set()
        self.resets: dict[int, int] = {}
        self.pings: list[int] = []
        self.gone_away: int | None = None
        self._buffer = b""
        self._next_stream = 1

    def open(self, kind: str, port: int | str, request: str, *, flags: int = 0) -> int:
        stream = self._next_stream
        self._next_stream += 2
        headers = {"streamtype": kind, "port": str(port), "requestid": request}
        self.socket.send(self.framer.syn_stream(stream, headers, flags))
        return stream

    def pair(self, port: int, request: str = "0") -> tuple[int, int]:
        """Data and error stream, opened as kubectl does: the error stream first, and ended."""
        error = self.open("error", port, request)
        self.end(error)
        return self.open("data", port, request), error

    def send(self, stream: int, data: bytes) -> None:
        self.socket.send(struct.pack(">II", stream, len(data)) + data)

    def end(self, stream: int) -> None:
        self.socket.send(struct.pack(">II", stream, 1 << 24))

    def reset(self, stream: int) -> None:
        self.socket.send(control(3, struct.pack(">II", stream, 5)))

    async def step(self) -> bool:
        """Takes one message of the server; False after its close."""
        message = await self.socket.receive()
        if message is None:
            return False
        assert isinstance(message, bytes)
        self._buffer += message
        while len(self._buffer) >= 8:
            first, second = struct.unpack(">II", self._buffer[:8])
            length = second & 0xFFFFFF
            if len(self._buffer) < 8 + length:
                break
            body, self._buffer = self._buffer[8 : 8 + length], self._buffer[8 + length :]
            if first >> 31:
                self._control(first & 0xFFFF, body)
            else:
                self.data[first] = self.data.get(first, b"") + body
                if second >> 24 & 1:
                    self.ended.add(first)
        return True

    def _control(self, kind: int, body: bytes) -> None:
        numbers = struct.unpack(">I", body[:4])
        match kind:
            case 2:
                self.replied.add(numbers[0])
            case 3:
                self.resets[numbers[0]] = struct.unpack(">I", body[4:8])[0]
            case 6:
                self.pings.append(numbers[0])
            case 7:
                self.gone_away = struct.unpack(">I", body[4:8])[0]
            case _:
                raise AssertionError(f"unexpected control frame {kind}")
