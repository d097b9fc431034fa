"""Makes answers of different servers, or of one server at different times, comparable.

Everything that varies from run to run is replaced by a word in angle brackets. What is left is
what two servers have to agree on. Pure: nothing is changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Json = Any

# The letters that the server draws generated names from.
_DRAWN = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_TEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    # A signed token: three base64url parts.
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(_TIME), "<time>"),
    (re.compile(rf"\b(kube-api-access-){_DRAWN}\b"), r"\1<suffix>"),
    # An object quoted in a message.
    (re.compile(r'(\\?"resourceVersion\\?":\\?")\d+'), r"\1<version>"),
    (re.compile(r"(ResourceVersion in (?:object meta: |record \())\d+"), r"\1<version>"),
    (re.compile(r"(Too large resource version: \d+, current: )\d+"), r"\1<version>"),
    (re.compile(r"\b(hash=)[0-9A-F]{64,}"), r"\1<hash>"),
    (re.compile(r"\b(failed to allocate IP )10\.0\.\d+\.\d+"), r"\1<address>"),
    (re.compile(r'(\[")10\.0\.\d+\.\d+("\]: failed)'), r"\1<address>\2"),
)
_AGE = re.compile(r"^(?:\d+(?:ms|[smhdy]))+$")
_RESTARTED = re.compile(r"^(\d+) \((?:\d+(?:ms|[smhdy]))+ ago\)$")
_NODE_PORTS = range(30000, 32768)


def normalise(response: Json, *, managed_fields: bool = True) -> Json:
    """The answer with all that varies replaced. Watch answers are lists of events.

    `managed_fields=False` leaves out metadata.managedFields, for comparing what was stored
    without who wrote it.
    """
    return _value("", response, managed_fields)


def _value(key: str, value: Json, managed_fields: bool) -> Json:
    if isinstance(value, Mapping):
        return _mapping(value, managed_fields)
    if isinstance(value, list):
        # The key goes on to the items: `clusterIPs` holds what `clusterIP` holds.
        return [_value(key, item, managed_fields) for item in value]
    special = _BY_KEY.get(key)
    if special is not None and value not in ("", None):
        return special(value)
    return _text(value) if isinstance(value, str) else value


def _mapping(value: Mapping[str, Json], managed_fields: bool) -> dict[str, Json]:
    prefix = value.get("generateName")
    result = {}
    for key, item in value.items():
        if key == "managedFields" and not managed_fields:
            continue
        if key == "name" and isinstance(prefix, str) and _generated(prefix, item):
            result[key] = f"{prefix}<suffix>"
        else:
            result[_text(key)] = _value(key, item, managed_fields)
    return result


def _generated(prefix: str, name: Json) -> bool:
    return isinstance(name, str) and re.fullmatch(re.escape(prefix) + _DRAWN, name) is not None


def _text(text: str) -> str:
    for pattern, word in _TEXT:
        text = pattern.sub(word, text)
    return text


def _cell(value: Json) -> Json:
    """A printed cell: ages count on while nothing else changes."""
    if not isinstance(value, str):
        return value
    if _AGE.match(value):
        return "<age>"
    return _text(_RESTARTED.sub(r"\1 (<age> ago)", value))


def _address(value: Json) -> Json:
    return value if value == "None" else "<address>"


def _port(value: Json) -> Json:
    return "<port>" if value in _NODE_PORTS else value


def _always(word: str) -> Callable[[Json], Json]:
    return lambda _: word


_BY_KEY: Mapping[str, Callable[[Json], Json]] = {
    "uid": _always("<uid>"),
    # A Binding or a Scale may send them back, so a fixed value is as good as any.
    "resourceVersion": _always("<version>"),
    "continue": _always("<continue>"),
    "token": _always("<token>"),
    "clusterIP": _address,
    "clusterIPs": _address,
    "nodePort": _port,
    "healthCheckNodePort": _port,
    "cells": _cell,
}
