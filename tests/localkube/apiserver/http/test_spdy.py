"""SPDY framing, against frames made by hand from the draft."""

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.http import spdy
from localkube.apiserver.http.spdy import Data, FrameReader, Ping, Reset, SynStream
from tests.localkube.apiserver.http.spdy_client import Framer, control


def frames(*parts: bytes) -> list[spdy.Frame]:
    reader = FrameReader()
    return [frame for part in parts for frame in reader.feed(part) if frame is not None]


def test_the_dictionary_is_the_one_of_the_draft() -> None:
    assert len(spdy.DICTIONARY) == 1423
    # Its Adler-32 is what compressed streams name it by.
    assert zlib.adler32(spdy.DICTIONARY) == 0xE3C6A7C2


def test_a_stream_opens_with_headers() -> None:
    headers = {"streamtype": "data", "port": "8080", "requestid": "0"}
    assert frames(Framer().syn_stream(1, headers)) == [SynStream(1, headers, is_last=False)]


def test_header_blocks_of_a_session_are_one_compressed_stream() -> None:
    framer = Framer()
    sent = [framer.syn_stream(number, {"port": str(number)}) for number in (1, 3, 5)]
    assert [frame.headers["port"] for frame in frames(*sent) if isinstance(frame, SynStream)] == [
        "1",
        "3",
        "5",
    ]


def test_data_is_passed_on_as_it_comes() -> None:
    raw = struct.pack(">II", 7, 1 << 24 | 5) + b"hello"
    assert frames(raw[:10], raw[10:]) == [
        Data(7, b"he", is_last=False),
        Data(7, b"llo", is_last=True),
    ]


def test_an_empty_last_frame_is_the_end() -> None:
    assert frames(spdy.last(3)) == [Data(3, b"", is_last=True)]


def test_what_we_do_not_need_is_passed_over() -> None:
    ignored = [
        control(4, struct.pack(">III", 1, 7, 65536)),  # SETTINGS
        control(9, struct.pack(">II", 1, 1000)),  # WINDOW_UPDATE
        control(7, struct.pack(">II", 1, 0)),  # GOAWAY
    ]
    assert frames(*ignored, spdy.ping(5), spdy.reset(3, spdy.CANCEL)) == [Ping(5), Reset(3)]


def test_headers_frames_are_passed_over_but_decompressed() -> None:
    framer = Framer()
    raw = control(8, (1).to_bytes(4) + framer.block({"a": "b"})) + framer.syn_stream(3, {"c": "d"})
    assert frames(raw) == [SynStream(3, {"c": "d"}, is_last=False)]


def test_our_reply_can_be_read_with_the_dictionary() -> None:
    writer, inflater = spdy.ReplyWriter(), zlib.decompressobj(zdict=spdy.DICTIONARY)
    for stream in (1, 3):
        raw = writer.syn_reply(stream)
        assert struct.unpack(">HHI", raw[:8]) == (0x8003, 2, len(raw) - 8)
        assert int.from_bytes(raw[8:12]) == stream
        assert inflater.decompress(raw[12:]) == bytes(4)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n".replace(b"G", b"\xc7"),
        struct.pack(">HHI", 0x8002, 6, 4) + bytes(4),  # SPDY/2
        struct.pack(">HHI", 0x8003, 1, 2**24 - 1),  # a control frame of 16 MiB
        control(1, b"short"),
        control(1, bytes(10) + b"not compressed"),
        control(6, b"toolong"),
        control(99, b""),
        control(1, bytes(10) + Framer().compressed((2**31).to_bytes(4))),
        control(1, bytes(10) + Framer().compressed((1).to_bytes(4) + (99).to_bytes(4) + b"a")),
        control(1, bytes(10) + Framer().compressed(b"")),
    ],
)
def test_broken_frames_are_errors(raw: bytes) -> None:
    with pytest.raises(spdy.SpdyError):
        frames(raw)


def test_a_header_block_that_inflates_without_end_is_an_error() -> None:
    bomb = Framer().compressed(bytes(20_000_000))
    assert len(bomb) < 64 * 1024
    with pytest.raises(spdy.SpdyError, match="too large"):
        frames(control(1, bytes(10) + bomb))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.binary(max_size=50)), max_size=5), st.integers(1, 9)
)
def test_how_bytes_are_split_makes_no_difference(sent: list[tuple[int, bytes]], size: int) -> None:
    framer = Framer()
    raw = b"".join(spdy.data(s, d) + framer.syn_stream(s, {"n": d.hex()}) for s, d in sent)
    split = frames(*(raw[at : at + size] for at in range(0, len(raw), size)))
    assert _merged(split) == _merged(frames(raw))


def _merged(found: list[spdy.Frame]) -> list[object]:
    merged: list[object] = []
    for frame in found:
        if isinstance(frame, Data):
            merged += [(frame.stream, byte) for byte in frame.data]
        else:
            merged.append(frame)
    return merged


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_frames_or_an_error(parts: list[bytes]) -> None:
    with suppress(spdy.SpdyError):
        frames(*parts)
