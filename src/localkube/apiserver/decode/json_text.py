"""JSON bodies, and what orjson does not tell: how deep they are, and which keys come twice.

Both are beside the fast path: brackets are counted first, repeated keys looked for when asked.
"""

import json
from collections.abc import Iterator
from typing import Any

import orjson

from localkube.apiserver.decode.weight import MAX_VALUES, is_deep, refuse_too_many
from localkube.apiserver.schema.strictness import Key

MAX_DEPTH = 100
# Of the paths of keys that come twice, all together: a long key is in the path of all below it.
_MAX_PATHS = 4 * 1024 * 1024
# Keys alone matter, and Python refuses to read very long numbers.
_NUMBERS_AS_TEXT: dict[str, Any] = {"parse_int": str, "parse_float": str}


class BadJson(ValueError):
    """Says what is wrong, and where."""


def parse(text: bytes, most: int = MAX_VALUES) -> Any:
    """Raises BadJson, and TooManyValues before anything is parsed."""
    refuse_too_many(text, most)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"invalid JSON: {error}") from error
    if is_deep(text, MAX_DEPTH):
        raise BadJson("exceeded max depth")
    return value


def merged(text: bytes) -> Any:
    """As Go's decoder reads keys that come twice: objects are merged, all else is replaced."""
    # What does not fit 64 bits is a float, as for `parse`.
    return json.loads(text, object_pairs_hook=_merged_pairs, parse_int=orjson.loads)


def _merged_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        _merge(result, key, value)
    return result


def _merge(into: dict[str, Any], key: str, value: Any) -> None:
    """In place: a copy for each repetition would take the square of their number."""
    known = into.get(key)
    if isinstance(known, dict) and isinstance(value, dict):
        for name, inner in value.items():
            _merge(known, name, inner)
    else:
        into[key] = value


def keys_in_order(text: bytes, parsed: Any) -> list[Key]:
    """Every key of the text, if one comes more than once in its object; nothing otherwise.
    `parsed`: the text's value."""
    if _surely_unique(text, parsed) or not _repeats(text):
        return []
    pairs = json.loads(text, object_pairs_hook=_Pairs, **_NUMBERS_AS_TEXT)
    found, size = list[Key](), 0
    for key in _keys(pairs, ""):
        size += len(key.path)
        if size > _MAX_PATHS:
            break
        found.append(key)
    return found


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
