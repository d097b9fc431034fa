"""One step of a field path, in the spelling of FieldsV1.

    f:image                     a field, or a key of a map
    k:{"name":"c"}              an element of a list that has keys
    v:"x"                       an element of a list that is a set
    i:0                         an element by its place: never written here, but understood
    .                           the thing itself

Field sets keep their elements in `order`, which is the order of a real API server.
"""

from functools import lru_cache
from typing import Any, TypeAlias

import orjson

from localkube.apiserver.memory import forgotten, remembered
from localkube.apiserver.patch import go_text

SELF = "."

Scalar: TypeAlias = str | float | bool


class BadElement(ValueError):
    """Not the spelling of a path element."""


class UnknownElement(ValueError):
    """Well spelt, of a type that does not exist (yet)."""


@forgotten
@lru_cache(maxsize=8192, typed=True)
def of_key(name: str, value: Scalar) -> str:
    return "k:" + _json({name: value})


@forgotten
@lru_cache(maxsize=8192, typed=True)
def of_keys(*names_and_values: Scalar) -> str:
    """Name, value, name, value...: sorted by name."""
    pairs = iter(names_and_values)
    return "k:" + _json(dict(zip(pairs, pairs, strict=True)))


@forgotten
@lru_cache(maxsize=8192, typed=True)
def of_value(value: Scalar) -> str:
    return "v:" + _json(value)


def _json(value: Any) -> str:
    """JSON as Go writes it: these characters are escaped for the sake of HTML."""
    text = orjson.dumps(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def parsed(element: str) -> tuple[str, Any]:
    """(type, content): ("f", name), ("k", fields), ("v", value), ("i", place)."""
    if len(element) < 2:
        raise BadElement("key must be 2 characters long:")
    head, content = element[0], element[2:]
    if element[1] != ":":
        raise BadElement(f"missing colon: {element}")
    if head == "f":
        return head, content
    if head not in "kvi":
        raise UnknownElement(element)
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as no:
        raise BadElement(str(no)) from None
    if (head == "k" and type(value) is not dict) or (head == "i" and type(value) is not int):
        raise BadElement(element)
    return head, value


def normal(element: str) -> str:
    """The one spelling of an element that a client may have spelt otherwise."""
    head, content = parsed(element)
    if head == "k":
        return "k:" + _json(dict(sorted(content.items())))
    return "v:" + _json(content) if head == "v" else element


@remembered(8192)
def order(element: str) -> tuple[Any, ...]:
    """Sort key: the thing itself, fields by name, then elements by keys, by value, by place."""
    if element == SELF:
        return (0,)
    head, content = parsed(element)
    if head == "f":
        return (1, content)
    if head == "k":
        return (2, *((name, *_value_order(value)) for name, value in content.items()))
    return (3, *_value_order(content)) if head == "v" else (4, content)


def _value_order(value: Any) -> tuple[int, Any]:
    if type(value) is bool:
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if type(value) is str:
        return 1, value
    return 3, _json(value)


def text(element: str) -> str:
    """As error messages spell it: `.image`, `[name="c"]`, `[="x"]`, `[0]`."""
    head, content = parsed(element)
    if head == "f":
        return f".{content}"
    if head == "k":
        pairs = ",".join(f"{name}={go_text.scalar(value)}" for name, value in content.items())
        return f"[{pairs}]"
    return f"[={go_text.scalar(content)}]" if head == "v" else f"[{content}]"
