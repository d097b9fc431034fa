"""The channel protocols, message by message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.subresources import channels
from localkube.apiserver.subresources.channels import Closed, Data, decoded, encoded

PROTOCOLS = [channels.V5, channels.V4, channels.V4_TEXT, channels.OLD, channels.OLD_TEXT]


@given(st.sampled_from(PROTOCOLS), st.integers(0, 20), st.binary())
def test_what_is_encoded_can_be_decoded(
    protocol: channels.ChannelProtocol, channel: int, data: bytes
) -> None:
    assert decoded(protocol, encoded(protocol, channel, data)) == Data(channel, data)


def test_a_binary_message_begins_with_its_channel() -> None:
    assert encoded(channels.V4, 1, b"foo") == b"\x01foo"


def test_a_text_message_begins_with_a_digit() -> None:
    assert encoded(channels.V4_TEXT, 1, b"foo\n") == "1Zm9vCg=="


def test_from_v5_on_a_channel_can_be_closed_alone() -> None:
    assert decoded(channels.V5, b"\xff\x00") == Closed(0)
    assert decoded(channels.V4, b"\xff\x00") == Data(255, b"\x00")


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (channels.V5, b""),
        (channels.V5, b"\xff"),
        (channels.V5, b"\xff\x00\x00"),
        (channels.V4_TEXT, "1not base64!"),
        (channels.V4_TEXT, " Zm9v"),
    ],
)
def test_what_is_not_of_the_protocol_says_nothing(
    protocol: channels.ChannelProtocol, message: bytes | str
) -> None:
    assert decoded(protocol, message) is None


@given(st.sampled_from(PROTOCOLS), st.one_of(st.binary(), st.text()))
def test_any_message_is_understood_or_ignored(
    protocol: channels.ChannelProtocol, message: bytes | str
) -> None:
    found = decoded(protocol, message)
    assert found is None or found.channel >= 0
