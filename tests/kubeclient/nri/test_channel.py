import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.nri.channel import MAX_DATA, BadFrame, Incoming, Message, framed

MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from((1, 2)),
        st.integers(0, 2**32 - 1),
        st.sampled_from((1, 2)),
        st.binary(max_size=40),
    ),
    max_size=4,
)


@given(MESSAGES, st.integers(1, 30))
def test_messages_arrive_whole_however_the_socket_cuts_them(
    messages: list[Message], piece: int
) -> None:
    raw = b"".join(map(framed, messages))
    incoming = Incoming()
    found: list[Message] = []
    for start in range(0, len(raw), piece):
        found += incoming.feed(raw[start : start + piece])
    assert found == messages


@given(MESSAGES, st.integers(1, 30))
def test_messages_arrive_whole_however_frames_cut_them(messages: list[Message], piece: int) -> None:
    incoming = Incoming()
    found: list[Message] = []
    for message in messages:
        inner = framed(message)[8:]
        for start in range(0, len(inner), piece):
            part = inner[start : start + piece]
            found += incoming.feed(struct.pack(">II", message.connection, len(part)) + part)
    assert found == messages


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (struct.pack(">II", 1, MAX_DATA + 11), "a frame of 4194315 bytes, at most 4194314"),
        (struct.pack(">II", 3, 1), "connection 3; there are 1 and 2"),
        (struct.pack(">II", 0, 1), "connection 0; there are 1 and 2"),
        (
            struct.pack(">IIIIBB", 1, 10, MAX_DATA + 1, 1, 1, 0),
            "a message of 4194305 bytes, at most 4194304",
        ),
    ],
)
def test_what_is_too_long_or_goes_nowhere_is_refused_before_it_is_kept(
    raw: bytes, words: str
) -> None:
    with pytest.raises(BadFrame, match=words):
        list(Incoming().feed(raw))


@given(st.binary(max_size=200))
def test_bytes_of_anything_give_messages_or_a_complaint(raw: bytes) -> None:
    try:
        list(Incoming().feed(raw))
    except BadFrame:
        return


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(BadFrame, match="at most 4194304"):
        framed(Message(1, 1, 1, bytes(MAX_DATA + 1)))
