"""Large bodies: every byte once, in order, and never much more than a slice at a time."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.http import bodies

PIECES = st.lists(st.binary(max_size=9), max_size=12)


@given(PIECES)
def test_slices_of_pieces_are_the_body(pieces: list[bytes]) -> None:
    with patch.object(bodies, "SLICE", 8):
        assert b"".join(bodies.slices(pieces)) == b"".join(pieces)


@given(PIECES)
def test_a_slice_ends_with_the_piece_that_fills_it(pieces: list[bytes]) -> None:
    with patch.object(bodies, "SLICE", 8):
        slices = list(bodies.slices(pieces))
    assert all(8 <= len(each) < 8 + 9 for each in slices[:-1])


@given(st.binary(max_size=40))
def test_slices_of_one_piece_are_the_body(body: bytes) -> None:
    with patch.object(bodies, "SLICE", 8):
        slices = list(bodies.slices(body))
    assert b"".join(slices) == body
    assert all(len(each) <= 8 for each in slices)
