"""All ways to spoil one field of an object, and how to tell two servers' complaints apart."""

import copy
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Obj = dict[str, Any]
Path = tuple[str | int, ...]

_TOO_LONG = "a" * 254
_STRINGS = ("", "Bad_Name", _TOO_LONG, "x" * 64, "..", "/abs", "-1", "a b", "1Gi")
_NUMBERS = (0, -1, 101, 70000)
_MAPS = ("labels", "annotations", "matchLabels", "nodeSelector", "data", "limits", "hard")
_SERVERS_OWN = ("managedFields", "uid", "creationTimestamp", "resourceVersion", "generation")
# Expressions and schemas have judges of their own.
_NOT_HERE = ("expression", "openAPIV3Schema", "generateName", "selfLink", *_SERVERS_OWN)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


class Removed:
    """Stands for no value at all."""


class Change(NamedTuple):
    path: Path
    value: Any


def written(change: Change) -> list[Any]:
    """As JSON: no value, or one."""
    if change.value is Removed:
        return [list(change.path), []]
    return [list(change.path), ["<long>" if change.value == _TOO_LONG else change.value]]


def read(path: list[str | int], values: list[Any]) -> Change:
    if not values:
        return Change(tuple(path), Removed)
    return Change(tuple(path), _TOO_LONG if values[0] == "<long>" else values[0])


def changes(obj: Obj) -> Iterator[Change]:
    for path, value in _places(obj, ()):
        if path[0] in ("apiVersion", "kind") or path == ("metadata",):
            continue
        yield Change(path, Removed)
        for other in _others(path, value):
            if other != value:
                yield Change(path, other)


def changed(obj: Obj, change: Change) -> Obj:
    made = copy.deepcopy(obj)
    *way, last = change.path
    holder: Any = made
    for step in way:
        holder = holder[step]
    if change.value is Removed:
        del holder[last]
    else:
        holder[last] = copy.deepcopy(change.value)
    return made


def comparable(text: str) -> str:
    """Go prints nil and empty differently, which we do not keep apart; some values are random."""
    for empty in ("[]", "{}"):
        text = text.replace(empty, "null")
    text = text.replace(_TOO_LONG, "<long>")
    return _TIME.sub("<time>", _UUID.sub("<uid>", text))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _places(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    inner: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, dict):
        inner = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    for key, below in inner:
        if key not in _NOT_HERE:
            yield (*path, key), below
            yield from _places(below, (*path, key))


def _others(path: Path, value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, str):
        yield from _STRINGS
    elif isinstance(value, int):
        yield from _NUMBERS
    elif isinstance(value, list) and value:
        yield [*value, value[0]]
        yield []
    elif isinstance(value, dict) and path[-1] in _MAPS:
        yield {**value, "bad key": "x", "a": "bad value!"}
    elif isinstance(value, dict):
        yield {}
