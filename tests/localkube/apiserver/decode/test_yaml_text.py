"""Texts and values are those of a real kube-apiserver 1.35.8 for the same YAML."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.decode.yaml_text import BadYaml, parse


def _value(text: str) -> Any:
    return parse(text.encode()).value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("n", False),
        ("Off", False),
        ("~", None),
        ("1_000", 1000),
        ("0x1F", 31),
        ("010", 8),
        ("0o17", 15),
        ("-0b11", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("'yes'", "yes"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("!foo bar", "bar"),
        ("!!binary aGVsbG8=", "hello"),
        ("=", "="),
        ("<<", "<<"),
        (str(2**70), float(2**70)),
        ("9" * 1000, "9" * 1000),
        # Not recorded: as we understand the resolver of go-yaml.
        ("0x" + "f" * 298, "0x" + "f" * 298),
        ("-0x" + "f" * 17, "-0x" + "f" * 17),
        ("0" + "7" * 30, float("7" * 30)),
    ],
)
def test_scalars_are_read_as_go_reads_them(text: str, value: Any) -> None:
    read = _value(f"a: {text}")["a"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a:\n- b\n c: d", "yaml: line 3: mapping values are not allowed in this context"),
        ("a:\n\tb: c", "yaml: line 2: found character that cannot start any token"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: -.INF", "json: unsupported value: -Inf"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("&a {b: *a}", "yaml: anchor 'a' value contains itself"),
        ("*a", "yaml: unknown anchor 'a' referenced"),
    ],
)
def test_bad_yaml_is_refused_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(BadYaml) as refused:
        _value(text)
    assert str(refused.value) == why


def test_keys_are_text() -> None:
    assert _value('{1: "x", true: "y", 1.50: "z"}') == {"1": "x", "true": "y", "1.5": "z"}
    with pytest.raises(BadYaml, match="invalid map key"):
        _value("? [a]\n: 1")


def test_aliases_are_copies() -> None:
    value = _value("a: &x {b: [1]}\nc: *x")
    value["a"]["b"].append(2)
    assert value["c"] == {"b": [1]}


def test_merge_keys_fill_in_what_is_missing() -> None:
    assert _value("{a: &x {b: 1, c: 2}, d: {<<: *x, c: 3}}")["d"] == {"b": 1, "c": 3}
    with pytest.raises(BadYaml, match="map merge requires map"):
        _value("{<<: 1}")


def test_repeated_keys_are_told_with_their_line() -> None:
    parsed = parse(b'data: {a: "1"}\nx: 1\ndata: {b: "1"}\n')
    assert parsed.value == {"data": {"b": "1"}, "x": 1}
    assert parsed.repeated == ['line 3: key "data" already set in map']


def test_only_the_first_document_counts() -> None:
    assert _value("a: 1\n---\nb: 2\n") == {"a": 1}


def test_an_empty_body_is_nothing() -> None:
    assert _value("") is None


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 50_000, "? " * 100_000])
def test_a_very_deep_body_is_refused(text: str) -> None:
    with pytest.raises(BadYaml, match="exceeded max depth"):
        _value(text)


def test_aliases_cannot_make_a_body_deep() -> None:
    lines = ["a0: &a0 [[[[[[[[[[x]]]]]]]]]]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 100)]
    with pytest.raises(BadYaml, match="exceeded max depth"):
        _value("\n".join(lines))


def test_aliases_cannot_blow_a_body_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 9):
        lines.append(f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9) + "]")
    with pytest.raises(BadYaml, match="excessive aliasing"):
        _value("\n".join(lines))


@given(st.text(" \n:-[]{}&*!'\"<>|?#,ab1.~\t\x00é", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadYaml):
        json.dumps(_value(text), allow_nan=False)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text("ab yn0.", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_json_is_read_as_yaml(value: Any) -> None:
    assert _value(json.dumps(value)) == value  # JSON is YAML


def test_the_key_of_a_merge_is_a_text_for_whoever_refers_to_it() -> None:
    assert _value("{&a <<: {c: 1}, b: *a}") == {"b": "<<", "c": 1}
