"""SPDY/3.1 framing: bytes to frames and back. No I/O.

kubectl port-forward speaks SPDY inside a WebSocket. What it needs of SPDY is here: streams with
headers, data, ends and resets, and pings. SETTINGS, HEADERS, GOAWAY and WINDOW_UPDATE are read and
passed over: kubectl's SPDY has no flow control (it never grants a window, and would stall a sender
who waits for one), so both sides are slowed down by the WebSocket below instead; and what GOAWAY
announces is told by the WebSocket's end.

Everything has a limit: control frames and header blocks are small, and inflating stops at a limit.
Data is passed on as it arrives, never gathered.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# One frame of data has at most 2**24 - 1 bytes by its length field; we send far smaller ones.
DATA_FRAME = 32 * 1024

_CONTROL_FRAME = 64 * 1024
_HEADER_BLOCK = 64 * 1024
_HEADERS = 100

_VERSION = 3
_FIN = 1

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _HEADERS_TYPE = 1, 2, 3, 4, 6, 7, 8
_WINDOW_UPDATE = 9
_PASSED_OVER = frozenset({_SETTINGS, _GOAWAY, _WINDOW_UPDATE})

# Why a stream or a session ends.
PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 1, 3, 5

# The dictionary that header blocks are compressed with: draft-mbelshe-httpbis-spdy-00, 2.6.10.1.
# First words with their lengths, then text.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date "
    "etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified location max-forwards pragma proxy-authenticate "
    "proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url "
    "public set-cookie keep-alive origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00"
    " Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(len(word).to_bytes(4) + word.replace("_", " ").encode() for word in _WORDS.split(" "))
    + _TEXT.encode()
)


class SpdyError(Exception):
    """The peer broke the protocol or a limit; the session cannot go on."""


@dataclass(frozen=True, slots=True)
class SynStream:
    stream: int
    headers: Mapping[str, str]
    is_last: bool


@dataclass(frozen=True, slots=True)
class Data:
    """Some of a stream's data; a frame may come in several of these."""

    stream: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class Reset:
    stream: int


@dataclass(frozen=True, slots=True)
class Ping:
    id: int


Frame = SynStream | Data | Reset | Ping


class FrameReader:
    """Gives the frames in what it is fed; None for one that is passed over, so that whoever reads
    can let others go first. Raises SpdyError."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflater = zlib.decompressobj(zdict=DICTIONARY)
        # The data frame that is being passed on: its stream, what is missing, whether it is last.
        self._data: tuple[int, int, bool] | None = None

    def feed(self, data: bytes) -> Iterator[Frame | None]:
        self._buffer += data
        while True:
            frame = self._rest_of_data() if self._data is not None else None
            if frame is not None:
                yield frame
            if len(self._buffer) < 8 or self._data is not None:
                return
            first, second = struct.unpack_from(">II", self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if not first >> 31:
                del self._buffer[:8]
                self._data = (first, length, bool(flags & _FIN))
                continue
            if first >> 16 & 0x7FFF != _VERSION:
                raise SpdyError("not SPDY/3")
            if length > _CONTROL_FRAME:
                raise SpdyError("control frame too large")
            if len(self._buffer) < 8 + length:
                return
            body = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            yield self._control(first & 0xFFFF, flags, body)

    def _rest_of_data(self) -> Data | None:
        assert self._data is not None
        stream, missing, is_last = self._data
        data = bytes(self._buffer[:missing])
        del self._buffer[:missing]
        missing -= len(data)
        self._data = (stream, missing, is_last) if missing else None
        if data or not missing:
            return Data(stream, data, is_last and not missing)
        return None

    def _control(self, kind: int, flags: int, body: bytes) -> Frame | None:
        if kind == _SYN_STREAM:
            if len(body) < 10:
                raise SpdyError("SYN_STREAM too short")
            stream = _stream(body)
            return SynStream(stream, self._headers(body[10:]), bool(flags & _FIN))
        if kind in (_SYN_REPLY, _HEADERS_TYPE):
            self._headers(body[4:])  # all blocks of a session are one compressed stream
            return None
        if kind == _RST_STREAM and len(body) == 8:
            return Reset(_stream(body))
        if kind == _PING and len(body) == 4:
            return Ping(int.from_bytes(body))
        if kind in _PASSED_OVER:
            return None
        raise SpdyError(f"bad control frame of type {kind}")

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflater.decompress(block, _HEADER_BLOCK)
        except zlib.error as error:
            raise SpdyError(f"bad header block: {error}") from None
        if self._inflater.unconsumed_tail:
            raise SpdyError("header block too large")
        return _pairs(plain)


def _stream(body: bytes) -> int:
    return int.from_bytes(body[:4]) & 0x7FFFFFFF


def _pairs(plain: bytes) -> dict[str, str]:
    count = int.from_bytes(plain[:4])
    if len(plain) < 4 or count > _HEADERS:
        raise SpdyError("bad number of headers")
    strings, at = [], 4
    for _ in range(2 * count):
        end = at + 4 + int.from_bytes(plain[at : at + 4])
        if at + 4 > len(plain) or end > len(plain):
            raise SpdyError("header block cut off")
        strings.append(plain[at + 4 : end].decode("latin-1"))
        at = end
    return dict(zip(strings[::2], strings[1::2], strict=True))


class ReplyWriter:
    """Header blocks share one compressor for the whole session; ours are empty."""

    def __init__(self) -> None:
        self._deflater = zlib.compressobj(zdict=DICTIONARY)

    def syn_reply(self, stream: int) -> bytes:
        block = self._deflater.compress(bytes(4)) + self._deflater.flush(zlib.Z_SYNC_FLUSH)
        return _framed(_SYN_REPLY, stream.to_bytes(4) + block)


def data(stream: int, payload: bytes) -> bytes:
    return struct.pack(">II", stream, len(payload)) + payload


def last(stream: int) -> bytes:
    """The end of what we send on a stream."""
    return struct.pack(">II", stream, _FIN << 24)


def reset(stream: int, status: int) -> bytes:
    return _framed(_RST_STREAM, struct.pack(">II", stream, status))


def ping(id: int) -> bytes:
    return _framed(_PING, id.to_bytes(4))


def go_away(last_stream: int, status: int) -> bytes:
    return _framed(_GOAWAY, struct.pack(">II", last_stream, status))


def _framed(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, len(body)) + body
