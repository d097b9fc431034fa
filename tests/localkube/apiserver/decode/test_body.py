"""Texts are those of a real kube-apiserver 1.35.8 for the same bodies."""

import base64
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.decode.body import (
    JSON,
    PROTOBUF,
    YAML,
    read_any,
    read_object,
    read_strictly,
    read_yaml,
    repeated_in,
)
from localkube.apiserver.kinds import Kind, Kinds, builtin_kinds
from localkube.apiserver.status import ApiError

KINDS = Kinds(builtin_kinds())
RECORDED = json.loads(Path(__file__).with_name("protobuf_bodies.json").read_text())


def _kind(group: str, version: str, plural: str) -> Kind:
    kind = KINDS.find(group, version, plural)
    assert kind is not None
    return kind


CONFIG_MAP = _kind("", "v1", "configmaps")
FOO = Kind(
    group="ex.io",
    version="v1",
    kind="Foo",
    plural="foos",
    singular="foo",
    namespaced=True,
    verbs=("create",),
    custom=True,
)


def _refusal(body: str | bytes, kind: Kind = CONFIG_MAP, media: str = JSON, code: int = 400) -> str:
    with pytest.raises(ApiError) as refused:
        read_object(body.encode() if isinstance(body, str) else body, media, kind)
    assert refused.value.code == code
    return str(refused.value)


@pytest.mark.parametrize("media", ["", JSON, "application/json; charset=utf-8", "Application/JSON"])
def test_json_is_read_whatever_its_name(media: str) -> None:
    assert read_object(b'{"metadata":{"name":"a"}}', media, CONFIG_MAP) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
    }


def test_yaml_is_read() -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\n"
    assert read_object(body, YAML, CONFIG_MAP)["metadata"] == {"name": "y1"}


def test_protobuf_is_read() -> None:
    body = base64.b64decode(RECORDED["ConfigMap"]["protobuf"])
    obj = read_object(body, PROTOBUF, CONFIG_MAP)
    assert obj == {"apiVersion": "v1", "kind": "ConfigMap", **RECORDED["ConfigMap"]["json"]}


def test_an_unknown_media_type_is_refused() -> None:
    assert _refusal("x", media="text/csv", code=415) == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NO_TYPE = "couldn't get version/kind; json parse error: "
NAMELESS = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "{bad",
            f"{NO_TYPE}invalid JSON: unexpected character, expected a string key: line 1 column 2"
            " (char 1) ({bad)",
        ),
        (
            "",
            f"{NO_TYPE}invalid JSON: Input is a zero-length, empty document: line 1 column 1"
            " (char 0) (<empty>)",
        ),
        (
            "hello",
            f"{NO_TYPE}invalid JSON: unexpected character, expected a JSON value: line 1 column 1"
            " (char 0) (68656c6c6f)",
        ),
        ("[]", f"{NO_TYPE}json: cannot unmarshal array into Go value of type {NAMELESS} (5b5d)"),
        (
            '{"kind":5}',
            f"{NO_TYPE}json: cannot unmarshal number into Go struct field .kind of type string "
            '({"kind":5})',
        ),
        (
            '{"apiVersion":"a/b/c","kind":"ConfigMap"}',
            'unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)',
        ),
    ],
)
def test_what_is_no_object_is_refused(body: str, why: str) -> None:
    assert _refusal(body) == UNRECOGNIZED + why


def test_bad_yaml_is_refused() -> None:
    why = "yaml: mapping values are not allowed in this context (613a20623a2063)"
    assert _refusal("a: b: c", media=YAML) == UNRECOGNIZED + why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty data (<empty>)"),
        (b"k8s\0", "empty body (6b387300)"),
        (b"k8s\0garbage", "proto: illegal wireType 7 (6b38730067617262616765)"),
    ],
)
def test_bad_protobuf_is_refused(body: bytes, why: str) -> None:
    assert _refusal(body, media=PROTOBUF) == UNRECOGNIZED + why


def test_a_bad_protobuf_message_is_refused() -> None:
    body = b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x03\x0a\xff\x01"
    wanted = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF'
    assert _refusal(body, media=PROTOBUF) == wanted


def test_null_is_an_empty_object() -> None:
    assert read_object(b"null", JSON, CONFIG_MAP) == {"apiVersion": "v1", "kind": "ConfigMap"}


REGISTERED = 'is registered for version "{}" in scheme "pkg/runtime/scheme.go:111"'


@pytest.mark.parametrize(
    ("api_version", "kind", "why"),
    [
        (
            "v1",
            "Pod",
            'Pod in version "v1" cannot be handled as a ConfigMap: '
            "converting (v1.Pod) to (core.ConfigMap): unknown conversion",
        ),
        (
            "v2",
            "ConfigMap",
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: '
            'no kind "ConfigMap" ' + REGISTERED.format("v2"),
        ),
        (
            "foo/v1",
            "",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            'no kind "ConfigMap" ' + REGISTERED.format("foo/v1"),
        ),
        (
            "",
            "Deployment",
            'Deployment in version "v1" cannot be handled as a ConfigMap: '
            'no kind "Deployment" ' + REGISTERED.format("v1"),
        ),
    ],
)
def test_another_kind_is_refused(api_version: str, kind: str, why: str) -> None:
    assert _refusal(json.dumps({"apiVersion": api_version, "kind": kind})) == why


def test_another_version_of_the_kind_is_refused() -> None:
    body = '{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler"}'
    assert _refusal(body, _kind("autoscaling", "v2", "horizontalpodautoscalers")) == (
        "the API version in the data (autoscaling/v1) does not match "
        "the expected API version (autoscaling/v2)"
    )


def test_a_custom_object_must_say_what_it_is() -> None:
    assert _refusal("{}", FOO) == (
        "the object provided is unrecognized (must be of type Foo): "
        "Object 'Kind' is missing in '{}' ({})"
    )
    assert _refusal('{"kind":"Foo"}', FOO) == (
        "the API version in the data () does not match the expected API version (ex.io/v1)"
    )
    body = '{"apiVersion":"ex.io/v1","kind":"Bar","metadata":{"name":"f"}}'
    assert _refusal(body, FOO, code=422) == (
        'Bar.ex.io "f" is invalid: kind: Invalid value: "Bar": must be Foo'
    )


def test_custom_objects_do_not_come_as_protobuf() -> None:
    body = b"k8s\0\n\x0f\n\x08ex.io/v1\x12\x03Foo"
    assert "application/yaml" in _refusal(body, FOO, PROTOBUF, 415)


def test_a_subresource_has_its_own_kind() -> None:
    eviction = _kind("", "v1", "pods").subresource("eviction")
    assert eviction is not None
    obj = read_object(b'{"metadata":{"name":"p"}}', JSON, eviction)
    assert (obj["apiVersion"], obj["kind"]) == ("policy/v1", "Eviction")


def test_delete_options_come_in_every_form() -> None:
    wanted = {"propagationPolicy": "Background"}
    assert read_any(b"", JSON) == {}
    assert read_any(b'{"propagationPolicy":"Background"}', "") == wanted
    assert read_any(b"propagationPolicy: Background", YAML) == wanted
    message = b"\x22\x0aBackground"
    body = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12" + bytes([len(message)]) + message
    named = {"apiVersion": "v1", "kind": "DeleteOptions"}
    assert read_any(body, PROTOBUF) == {**named, **wanted}


@pytest.mark.parametrize(
    ("body", "media"),
    [(b"[]", JSON), (b"{", JSON), (b"a: b: c", YAML), (b"x", PROTOBUF), (b"{}", "text/csv")],
)
def test_bad_options_are_refused(body: bytes, media: str) -> None:
    with pytest.raises(ApiError):
        read_any(body, media)


def test_an_applied_configuration_is_json_or_yaml() -> None:
    assert read_yaml(b'{"a":1}') == read_yaml(b"a: 1") == read_yaml(b"{a: 1}") == {"a": 1}
    with pytest.raises(ApiError) as refused:
        read_yaml(b"a: b: c")
    assert str(refused.value) == (
        "error decoding YAML: error converting YAML to JSON: "
        "yaml: mapping values are not allowed in this context"
    )
    with pytest.raises(ApiError) as refused:
        read_yaml(b"- a")
    assert str(refused.value) == (
        "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    )


def test_keys_that_come_twice_are_told() -> None:
    again = 'yaml: unmarshal errors:\n  line {}: key "data" already set in map'
    for body, media, told in (
        (b'{"data":{},"data":{"a":"b"}}', JSON, 'duplicate field "data"'),
        (b"data: {}\ndata: {a: b}", YAML, again.format(2)),
    ):
        obj, written = read_strictly(body, media, CONFIG_MAP)
        assert list(written.repeated) == [told]
        assert obj["data"] == {"a": "b"}
    assert list(repeated_in(b'{"data":{},"data":{}}').repeated) == ['duplicate field "data"']
    assert not repeated_in(b"data: {}").repeated
    protobuf = base64.b64decode(RECORDED["ConfigMap"]["protobuf"])
    assert not read_strictly(protobuf, PROTOBUF, CONFIG_MAP)[1].repeated


@given(
    st.one_of(
        st.binary(max_size=40),
        st.binary(max_size=40).map(lambda tail: b"k8s\0" + tail),
        st.text('{}[]:,"ab1 \n-&*', max_size=20).map(str.encode),
    ),
    st.sampled_from([JSON, YAML, PROTOBUF]),
    st.sampled_from([CONFIG_MAP, FOO, _kind("", "v1", "pods")]),
)
def test_any_body_is_read_or_refused(body: bytes, media: str, kind: Kind) -> None:
    with contextlib.suppress(ApiError):
        obj, written = read_strictly(body, media, kind)
        assert type(obj) is dict
        assert all(written.repeated)
    with contextlib.suppress(ApiError):
        assert type(read_any(body, media)) is dict
    with contextlib.suppress(ApiError):
        assert type(read_yaml(body)) is dict
    assert not repeated_in(body).in_order
