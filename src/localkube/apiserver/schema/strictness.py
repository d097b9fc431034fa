"""What strict decoding says of a body, in Kubernetes' order.

Built-in kinds in JSON: as the fields stand in the text. Everything else was a Go map on the way, so
repeated fields come first and unknown ones in the order of their names; custom kinds begin with the
unknown ones of metadata.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from kubeclient.bounded_numbers import bounded_number

_STEP = re.compile(r"\[([0-9]+)\]|([^.\[]+)")
_UNKNOWN = "unknown field "
# As many as Kubernetes' decoder keeps.
_MOST_SAID = 100
_LARGEST = 10**18  # a key may look like an index of any length


class Key(NamedTuple):
    path: str  # spec.containers[0].image
    again: bool  # it came before


@dataclass(frozen=True, slots=True)
class AsWritten:
    repeated: Sequence[str] = ()  # what is said of keys that come twice
    keys: Sequence[Key] = ()  # of JSON in which keys come twice: all of them, in order
    in_order: bool = True  # of the text


def said(unknown: Sequence[str], written: AsWritten, *, custom: bool) -> list[str]:
    """`unknown`: the texts about unknown fields, in the order of the parsed object."""
    return _all_said(unknown, written, custom=custom)[:_MOST_SAID]


def _all_said(unknown: Sequence[str], written: AsWritten, *, custom: bool) -> list[str]:
    if custom:
        first: list[str] = []
        rest: list[str] = []
        for text in unknown:
            (first if _path(text).startswith("metadata.") else rest).append(text)
        return [*written.repeated, *_sorted(first), *_sorted(rest)]
    if written.keys:
        return list(dict.fromkeys(_as_read(unknown, written.keys)))
    return [*written.repeated, *(unknown if written.in_order else _sorted(unknown))]


def duplicate_field(path: str) -> str:
    return f"duplicate field {_quoted(path)}"


def _as_read(unknown: Sequence[str], keys: Sequence[Key]) -> Iterator[str]:
    """An unknown field is skipped with all that is in it."""
    paths = {_path(text) for text in unknown}
    skipped = ""
    for key in keys:
        if skipped and key.path.startswith((f"{skipped}.", f"{skipped}[")):
            continue
        skipped = key.path if key.path in paths else ""
        if skipped:
            yield f"{_UNKNOWN}{_quoted(skipped)}"
        elif key.again:
            yield duplicate_field(key.path)


def _sorted(texts: Sequence[str]) -> list[str]:
    return sorted(texts, key=lambda text: _steps(_path(text)))


def _steps(path: str) -> list[tuple[int, str]]:
    """Comparable as a walk through sorted keys goes: the third element before the tenth."""
    return [
        (0, name) if name else (_LARGEST if (at := bounded_number(index)) is None else at, index)
        for index, name in _STEP.findall(path)
    ]


def _path(text: str) -> str:
    path: str = orjson.loads(text.removeprefix(_UNKNOWN))
    return path


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
