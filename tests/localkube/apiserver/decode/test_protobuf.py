"""protobuf_bodies.json: objects of a real kube-apiserver 1.35.8, each asked for in both forms."""

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.decode.protobuf import (
    MAGIC,
    BadProtobuf,
    Envelope,
    decode_message,
    open_envelope,
)
from localkube.apiserver.schema.load import definition_names

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("protobuf_bodies.json").read_text())
BODIES = {name: base64.b64decode(pair["protobuf"]) for name, pair in RECORDED.items()}
CORE = "io.k8s.api.core.v1"


def _definition(envelope: Envelope) -> str:
    group, _, version = envelope.api_version.rpartition("/")
    return definition_names()[group, version, envelope.kind]


@pytest.mark.parametrize("name", RECORDED)
def test_protobuf_says_the_same_as_json(name: str) -> None:
    envelope = open_envelope(BODIES[name])
    decoded = decode_message(envelope.message, _definition(envelope))
    assert decoded == RECORDED[name]["json"]


def _field(number: int, value: bytes | int) -> bytes:
    """One field on the wire; values and lengths below 128."""
    if isinstance(value, int):
        return _tag(number << 3) + bytes([value])
    return _tag(number << 3 | 2) + bytes([len(value)]) + value


def _tag(tag: int) -> bytes:
    return bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])


def test_zero_is_kept_where_go_has_a_pointer() -> None:
    replicas = _field(2, _field(1, 0))
    assert decode_message(replicas, "io.k8s.api.apps.v1.Deployment") == {"spec": {"replicas": 0}}


def test_zero_is_absent_where_go_leaves_it_out_of_json() -> None:
    port = _field(1, b"") + _field(2, 0) + _field(3, 80)
    assert decode_message(port, f"{CORE}.ContainerPort") == {"containerPort": 80}


def test_an_empty_message_is_kept() -> None:
    volume = _field(1, b"v") + _field(2, _field(2, b""))
    assert decode_message(volume, f"{CORE}.Volume") == {"name": "v", "emptyDir": {}}


def test_unset_times_and_target_ports_are_absent() -> None:
    meta = _field(8, b"")
    assert decode_message(meta, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") == {}
    target = _field(3, 80) + _field(4, _field(1, 0) + _field(2, 0) + _field(3, b""))
    assert decode_message(target, f"{CORE}.ServicePort") == {"port": 80}


def test_a_named_target_port_is_text() -> None:
    target = _field(4, _field(1, 1) + _field(2, 0) + _field(3, b"http"))
    assert decode_message(target, f"{CORE}.ServicePort") == {"targetPort": "http"}


SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
TEXT = _field(5, b"string")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (_field(24, _field(1, TEXT)), {"items": {"type": "string"}}),
        (_field(24, _field(2, TEXT) + _field(2, b"")), {"items": [{"type": "string"}, {}]}),
        (_field(24, b""), {"items": None}),
        (_field(30, _field(1, 1)), {"additionalProperties": True}),
        (_field(30, _field(1, 0)), {"additionalProperties": False}),
        (_field(30, _field(1, 1) + _field(2, b"")), {"additionalProperties": {}}),
        (_field(8, _field(1, b'{"a":[1]}')), {"default": {"a": [1]}}),
        (_field(20, _field(1, b"null")) + _field(20, _field(1, b"1")), {"enum": [None, 1]}),
    ],
)
def test_a_schema_is_what_go_would_have_said_in_json(message: bytes, said: Any) -> None:
    assert decode_message(message, SCHEMA) == said


@pytest.mark.parametrize(
    ("texts", "said"), [(_field(2, b"a") + _field(2, b"b"), ["a", "b"]), (_field(1, TEXT), None)]
)
def test_a_dependency_is_names_or_a_schema(texts: bytes, said: list[str] | None) -> None:
    entry = _field(1, b"key") + _field(2, texts)
    wanted = {"dependencies": {"key": said or {"type": "string"}}}
    assert decode_message(_field(32, entry), SCHEMA) == wanted


def test_negative_numbers_are_read() -> None:
    minus_one = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    value = decode_message(bytes([2 << 3]) + minus_one, "io.k8s.api.scheduling.v1.PriorityClass")
    assert value == {"value": -1}


def test_fields_of_newer_versions_are_skipped() -> None:
    assert decode_message(_field(15, b"new"), f"{CORE}.ConfigMap") == {}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty data"),
        (
            b"hello",
            "provided data does not appear to be a protobuf message, "
            "expected prefix [107 56 115 0]",
        ),
        (MAGIC, "empty body"),
        (MAGIC + b"garbage", "proto: illegal wireType 7"),
        (MAGIC + b"\x0a\xff\x01", "unexpected EOF"),
        (MAGIC + b"\x0a" + b"\xff" * 11, "proto: integer overflow"),
    ],
)
def test_a_bad_envelope_is_refused_in_gos_words(body: bytes, why: str) -> None:
    with pytest.raises(BadProtobuf) as refused:
        open_envelope(body)
    assert str(refused.value) == why


def test_a_bad_message_is_refused_in_gos_words() -> None:
    with pytest.raises(BadProtobuf, match="unexpected EOF"):
        decode_message(b"\x0a\xff\x01", f"{CORE}.ConfigMap")
    with pytest.raises(BadProtobuf, match="wrong wireType = 0 for field data"):
        decode_message(_field(2, 1), f"{CORE}.ConfigMap")


MUTATIONS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=5)


@given(st.sampled_from(sorted(BODIES)), MUTATIONS, st.integers(5, 4000))
def test_a_damaged_body_is_read_or_refused(
    name: str, changes: list[tuple[int, int]], end: int
) -> None:
    body = bytearray(BODIES[name])
    for place, value in changes:
        body[place % len(body)] = value
    _is_read_or_refused(bytes(body[:end]), _definition(open_envelope(BODIES[name])))


@given(st.sampled_from(sorted(BODIES)), st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(name: str, message: bytes) -> None:
    head = MAGIC + b"\x12" + bytes([len(message)])
    _is_read_or_refused(head + message, _definition(open_envelope(BODIES[name])))


def _is_read_or_refused(body: bytes, definition: str) -> None:
    with contextlib.suppress(BadProtobuf):
        json.dumps(decode_message(open_envelope(body).message, definition), allow_nan=False)
