import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.decode.json_text import BadJson, merged, parse, repeated_keys


# Texts of a real kube-apiserver 1.35.8.
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{bad", "invalid character 'b' looking for beginning of object key string"),
        ("", "unexpected end of JSON input"),
        ('{"a":', "unexpected end of JSON input"),
        ('{"a":"b"', "unexpected end of JSON input"),
        ("hello", "invalid character 'h' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('{"a":1}}', "invalid character '}' after top-level value"),
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        ('{"a":01}', "invalid character '1' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":[1 2]}', "invalid character '2' after array element"),
        ('{"a":[1,]}', "invalid character ']' looking for beginning of value"),
        ('{"a":{]}', "invalid character ']' looking for beginning of object key string"),
        (r'{"a":"\x"}', "invalid character 'x' in string escape code"),
        (r'{"a":"\u12x4"}', "invalid character 'x' in \\u hexadecimal character escape"),
        ('{"a":"\n"}', "invalid character '\\n' in string literal"),
        ('{"a":-}', "invalid character '}' in numeric literal"),
        ('{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        ('{"a":1e}', "invalid character '}' in exponent of numeric literal"),
        ('{"a":1e+}', "invalid character '}' in exponent of numeric literal"),
        ("1.5.5", "invalid character '.' after top-level value"),
        ("\0", "invalid character '\\x00' looking for beginning of value"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
    ],
)
def test_bad_json_is_refused_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(BadJson) as refused:
        parse(text.encode())
    assert str(refused.value) == why


def test_a_very_deep_body_is_refused() -> None:
    assert parse(b'{"a":' * 99 + b"[]" + b"}" * 99)
    with pytest.raises(BadJson, match="exceeded max depth"):
        parse(b"[" * 101 + b"]" * 101)
    with pytest.raises(BadJson):
        parse(b"[" * 100_000)


def test_brackets_in_text_do_not_count() -> None:
    text = '"' + r"\"[{" * 200 + '"'
    assert parse(f'{{"a":{text}}}'.encode()) == {"a": '"[{' * 200}


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert parse(b"[" + b",".join([b"{}"] * 200) + b"]") == [{}] * 200


def _repeated(text: bytes) -> list[str]:
    return repeated_keys(text, orjson.loads(text))


def test_repeated_keys_are_named_with_their_path() -> None:
    body = b'{"data":{"a":"1","a":"2"},"list":[{},{"b":1,"b":2,"b":3}],"data":{}}'
    assert _repeated(body) == ["data.a", "list[1].b", "data"]


def test_without_repeated_keys_there_is_nothing_to_say() -> None:
    body = b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}],"n":' + b"9" * 300 + b"}"
    assert _repeated(body) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(0, 9)
    | st.text('a"\\\n{', max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
)


@given(
    JSON, st.integers(0, 40), st.sampled_from([b"", b"{", b"]", b'"', b"\\", b"1", b"e", b"\xff"])
)
def test_broken_json_is_refused_and_nothing_worse(value: object, place: int, put: bytes) -> None:
    whole = orjson.dumps(value)
    broken = whole[:place] + put + whole[place + 1 :]
    try:
        wanted = orjson.loads(broken)
    except orjson.JSONDecodeError:
        with pytest.raises(BadJson, match=r"invalid|unexpected end"):
            parse(broken)
    else:
        assert parse(broken) == wanted
        assert isinstance(_repeated(broken), list)


OBJECTS = st.lists(
    st.tuples(
        st.sampled_from(['"a"', '"b"', '"\\u0061"', r'"\":"', '"\\u0022:"']),
        st.sampled_from([":", " : ", ": ", "\n:"]),
        st.sampled_from(
            ["1", r'"\":"', '"\\u0022:"', '{"a":1}', '[{"b":1,"b":2}]', '"\\"\\u003a"']
        ),
    ),
    max_size=4,
)


@given(OBJECTS)
def test_repeated_keys_are_always_found(pairs: list[tuple[str, str, str]]) -> None:
    text = "{" + ",".join("".join(pair) for pair in pairs) + "}"
    keys = [json.loads(key) for key, _, _ in pairs]
    repeats = len(set(keys)) < len(keys) or '"b":1,"b":2' in text
    assert bool(_repeated(text.encode())) == repeats


def test_a_number_is_the_same_beside_keys_that_come_twice() -> None:
    text = b'{"a": 1, "a": 2, "long": 1' + b"0" * 40 + b', "whole": 18446744073709551615}'
    assert merged(text) == parse(text) == {"a": 2, "long": 1e40, "whole": 2**64 - 1}
    assert type(merged(text)["long"]) is float
