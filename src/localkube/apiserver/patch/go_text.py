"""JSON values in error texts, as Go's formatting verbs print them."""

import math
from typing import Any

import orjson

_SHORT_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SHORT_ESCAPES |= {"\v": "\\v", '"': '\\"', "\\": "\\\\"}


def plain(value: Any) -> str:
    """%v: map[a:1 b:[x y]], nil is <nil>."""
    if isinstance(value, dict):
        pairs = " ".join(f"{key}:{plain(value[key])}" for key in sorted(value))
        return f"map[{pairs}]"
    if isinstance(value, list):
        return f"[{' '.join(plain(item) for item in value)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """%v of a float64: exponents from 1e21 on, as short as can be."""
    if value.is_integer() and math.fabs(value) < 1e21:
        return str(int(value))
    return repr(value)


def quoted(text: str) -> str:
    """%q."""
    return f'"{"".join(map(_quoted_character, text))}"'


def _quoted_character(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def source(value: Any) -> str:
    """%#v, the value as a Go program would write it."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{quoted(key)}:{source(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(source, value))}}}"
    if isinstance(value, str):
        return quoted(value)
    return plain(value) if value is not None else "interface {}(nil)"


def scalar(value: Any) -> str:
    """A value in a field path: text in quotes, the rest as JSON."""
    if isinstance(value, str):
        return quoted(value)
    return orjson.dumps(value).decode()


def type_name(value: Any) -> str:
    """%T of a decoded JSON value."""
    if isinstance(value, bool):
        return "bool"
    for python, go in _TYPE_NAMES:
        if isinstance(value, python):
            return go
    return "%!s(<nil>)"


_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (dict, "map[string]interface {}"),
    (list, "[]interface {}"),
    (str, "string"),
    (int, "int64"),
    (float, "float64"),
)
