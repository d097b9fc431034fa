"""JSON bodies, and what orjson does not tell: how deep they are, and which keys come twice.

Both are beside the fast path: brackets are counted first, repeated keys looked for when asked.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from localkube.apiserver.schema.strictness import Key

MAX_DEPTH = 100
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
# Keys alone matter, and Python refuses to read very long numbers.
_NUMBERS_AS_TEXT: dict[str, Any] = {"parse_int": str, "parse_float": str}
_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class BadJson(ValueError):
    """Says what is wrong, and where."""


def parse(text: bytes) -> Any:
    """Raises BadJson."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"invalid JSON: {error}") from error
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH and _is_deep(text):
        raise BadJson("exceeded max depth")
    return value


def _is_deep(text: bytes) -> bool:
    brackets = _STRING.sub(b"", text).translate(None, _BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return bool(brackets)


def merged(text: bytes) -> Any:
    """As Go's decoder reads keys that come twice: objects are merged, all else is replaced."""
    # What does not fit 64 bits is a float, as for `parse`.
    return json.loads(text, object_pairs_hook=_merged_pairs, parse_int=orjson.loads)


def _merged_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        known = result.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            value = _merged_pairs([*known.items(), *value.items()])
        result[key] = value
    return result


def keys_in_order(text: bytes, parsed: Any) -> list[Key]:
    """Every key of the text, if one comes more than once in its object; nothing otherwise.
    `parsed`: the text's value."""
    if _surely_unique(text, parsed) or not _repeats(text):
        return []
    pairs = json.loads(text, object_pairs_hook=_Pairs, **_NUMBERS_AS_TEXT)
    return list(_keys(pairs, ""))


class _Pairs(list[tuple[str, Any]]):
    """An object as written."""


def _surely_unique(text: bytes, parsed: Any) -> bool:
    """Written again, JSON without repeated keys is the same; or it has as many of `":` as before,
    blanks aside, unless an escape hides a quote or a colon."""
    again = orjson.dumps(parsed)
    if again == text:
        return True
    if b"\\" in text and b"\\u" in text:  # the first look is the cheap one
        return False
    return _marks(text) == _marks(again)


def _marks(text: bytes) -> int:
    return text.translate(None, b" \t\r\n").count(b'":')


def _repeats(text: bytes) -> bool:
    seen = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal seen
        seen = seen or len({key for key, _ in pairs}) != len(pairs)

    json.loads(text, object_pairs_hook=look, **_NUMBERS_AS_TEXT)
    return seen


def _keys(value: Any, path: str) -> Iterator[Key]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, inner in value:
            place = f"{path}.{key}" if path else key
            yield Key(place, key in seen)
            seen.add(key)
            yield from _keys(inner, place)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _keys(inner, f"{path}[{index}]")
