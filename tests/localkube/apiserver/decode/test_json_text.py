import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.apiserver.decode.json_text import BadJson, keys_in_order, merged, parse


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1 column 1"),
        ("hello", "line 1 column 1"),
        ("{bad", "line 1 column 2"),
        ('{"a":', "line 1 column 6"),
        ('{"a":1}}', "line 1 column 8"),
        ('{"a":1,}', "line 1 column 7"),
        ('{"a":[1 2]}', "line 1 column 9"),
        ('{\n"a":\ntru}', "line 3 column 1"),
        ("\0", "line 1 column 1"),
    ],
)
def test_bad_json_is_refused_with_the_place_of_the_fault(text: str, where: str) -> None:
    with pytest.raises(BadJson, match=f"invalid JSON: .*{where}"):
        parse(text.encode())


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
    keys = keys_in_order(text, orjson.loads(text))
    return list(dict.fromkeys(key.path for key in keys if key.again))


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
