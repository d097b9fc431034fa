"""Makes answers of different servers, or of one server at different times, comparable.

Everything that varies from run to run is replaced by a word in angle brackets. What is left is
what two servers have to agree on. Pure: nothing is changed in place.
"""

from __future__ import annotations

import json
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
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])"), "<uid>"),
    (re.compile(_TIME), "<time>"),
    (re.compile(rf"\b(kube-api-access-){_DRAWN}\b"), r"\1<suffix>"),
    # An object quoted in a message, or written as YAML.
    (re.compile(r'(\\?"?resourceVersion\\?"?: ?\\?")\d+'), r"\1<version>"),
    (re.compile(r"(ResourceVersion in (?:object meta: |record \())\d+"), r"\1<version>"),
    (re.compile(r"(Too large resource version: \d+, current: )\d+"), r"\1<version>"),
    (re.compile(r"\b(hash=)[0-9A-F]{64,}"), r"\1<hash>"),
    (re.compile(r"\b(failed to allocate IP )10(?:\.\d+){3}"), r"\1<address>"),
    (re.compile(r'(\[")10(?:\.\d+){3}("\]: failed)'), r"\1<address>\2"),
)
_AGE = re.compile(r"^(?:\d+(?:ms|[smhdy]))+$")
_RESTARTED = re.compile(r"^(\d+) \((?:\d+(?:ms|[smhdy]))+ ago\)$")
# A Service's own address, and the node's port beside the Service's: "80:32205/TCP".
_SERVICE_ADDRESS = re.compile(r"^10(?:\.\d+){3}$")
_PRINTED_PORT = re.compile(r"\b(\d+:)3[0-2]\d{3}(/)")
_NODE_PORTS = range(30000, 32768)


def normalise(response: Json, *, managed_fields: bool = True) -> Json:
    """The answer with all that varies replaced. Watch answers are lists of events.

    `managed_fields=False` leaves out metadata.managedFields, for comparing what was stored
    without who wrote it.
    """
    return _value("", response, managed_fields)


def unordered(response: Json) -> Json:
    """A Status or a rules review with its parts sorted. The server walks Go maps in some answers
    (validation of custom resources, rules of a user), so their order differs from run to run."""
    if not isinstance(response, Mapping):
        return response
    result = dict(response)
    details, status = result.get("details"), result.get("status")
    if isinstance(details, Mapping) and "causes" in details:
        causes = sorted(details["causes"], key=_written)
        result["details"] = {**details, "causes": causes}
        head, bracket, rest = str(result.get("message")).partition(": [")
        if bracket:
            result["message"] = f"{head}{bracket}{', '.join(sorted(_parts(rest, causes)))}]"
    if isinstance(status, Mapping):
        rules = ("resourceRules", "nonResourceRules")
        result["status"] = {
            key: sorted(value, key=_written) if key in rules else value
            for key, value in status.items()
        }
    return result


def _written(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _parts(text: str, causes: list[Json]) -> list[str]:
    """The errors in a message that lists them, which are those of the causes."""
    told = [f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in causes]
    return [each for each in told if each in text]


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
    if _SERVICE_ADDRESS.match(value):
        return "<address>"
    return _text(_PRINTED_PORT.sub(r"\1<port>\2", _RESTARTED.sub(r"\1 (<age> ago)", value)))


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
    # The port that the server happened to get.
    "serverAddress": _always("<address>"),
    "clusterIP": _address,
    "clusterIPs": _address,
    "nodePort": _port,
    "healthCheckNodePort": _port,
    "cells": _cell,
}
