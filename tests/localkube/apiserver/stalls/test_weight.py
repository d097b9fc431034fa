"""How much work a body makes is told from its bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.decode import weight
from localkube.apiserver.decode.weight import (
    MAX_VALUES,
    TooManyValues,
    is_deep,
    is_long,
    refuse_too_many,
    without_strings,
)

_TEXT = st.text(alphabet='ab"\\,[]{}:\u00e9', max_size=12)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


def _naive(text: bytes) -> bytes:
    kept, inside, escaped = bytearray(), False, False
    for byte in text:
        if not inside:
            if byte == ord('"'):
                inside = True
            else:
                kept.append(byte)
        elif escaped:
            escaped = False
        elif byte == ord("\\"):
            escaped = True
        elif byte == ord('"'):
            inside = False
    return bytes(kept)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@given(_JSON, st.integers(1, 40))
def test_strings_are_cut_out_wherever_a_slice_ends(value: object, size: int) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight, "_SLICE", size)
        assert b"".join(without_strings(text)) == _naive(text)


@given(_JSON, st.integers(0, 6))
def test_depth_is_that_of_the_value(value: object, limit: int) -> None:
    assert is_deep(json.dumps(value).encode(), limit) == (_depth(value) > limit)


def test_a_string_that_never_ends_ends_the_search() -> None:
    assert b"".join(without_strings(b'[1,"' + b"," * 200_000)) == b"[1,"


def test_a_body_may_have_as_many_values_as_the_limit() -> None:
    refuse_too_many(b"[" + b",".join([b"1"] * MAX_VALUES) + b"]")
    with pytest.raises(TooManyValues):
        refuse_too_many(b"[" + b",".join([b"1"] * (MAX_VALUES + 1)) + b"]")


def test_commas_in_texts_are_no_values() -> None:
    refuse_too_many(b'{"a":"' + b"{[,]}" * MAX_VALUES + b'"}')


def test_an_ordinary_body_is_short_and_many_values_are_long() -> None:
    assert not is_long(b'{"a":"' + b"x" * 10_000 + b'"}')
    assert not is_long(b"{" + b" " * 1000 + b"}")
    assert is_long(b"[" + b"{}," * 1000 + b"{}]")
    assert is_long(b"- " * 2000, "application/yaml")
    assert is_long(b"k8s\0" + b"\x12\x00" * 2000, "application/vnd.kubernetes.protobuf")
