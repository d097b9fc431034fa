"""YAML bodies, as Go's sigs.k8s.io/yaml reads them: YAML 1.1 scalars, dates stay text.

The value is built from the parser's events, with a stack of our own: PyYAML's composer calls itself
for every level and can be made to overflow the C stack. Depth is limited, and so is what aliases
may add up to.
"""

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from localkube.apiserver.decode.json_text import MAX_DEPTH

_LONGEST_NUMBER = 300
_MAX_ALIASED = 100_000  # values that aliases may stand for, all together
_MAX_VALUES = 100_000  # in one document: they take half a second
_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"([-+]?)(0b[01]+|0x[0-9a-fA-F]+|0o?[0-7]+|[1-9][0-9]*|0)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BASES = {"0b": 2, "0x": 16, "0o": 8}
_CORE = "tag:yaml.org,2002:"
_MERGE = object()


class BadYaml(ValueError):
    """Says what Go's parser says."""


class Parsed(NamedTuple):
    value: Any
    repeated: list[str]  # 'line 4: key "data" already set in map'


class _Open:
    """A list or map under construction."""

    def __init__(self, event: Any, anchor: str | None) -> None:
        self.is_map = isinstance(event, yaml.MappingStartEvent)
        self.value: Any = {} if self.is_map else []
        self.anchor = anchor
        self.key: Any = None
        self.has_key = False
        self.merged: list[Any] = []


def parse(text: bytes) -> Parsed:
    """The first document. Raises BadYaml."""
    reader = _Reader()
    try:
        for number, event in enumerate(_first_document(text)):
            if number > _MAX_VALUES:
                raise BadYaml("yaml: document contains too many values")
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        raise BadYaml(_worded(error)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadYaml("yaml: control characters are not allowed") from error
    return Parsed(reader.root, reader.repeated)


def _first_document(text: bytes) -> Iterator[Any]:
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        yield event


def _worded(error: yaml.MarkedYAMLError) -> str:
    line = error.problem_mark.line if error.problem_mark else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{error.problem}"


class _Reader:
    """Puts events together."""

    def __init__(self) -> None:
        self.root: Any = None
        self.repeated: list[str] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, Any] = {}
        self._aliased = 0

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._keep(event, _scalar(event, self._wants_key()))
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self._open) >= MAX_DEPTH:
                raise BadYaml("yaml: exceeded max depth")
            self._open.append(_Open(event, event.anchor))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._alias(event.anchor), event)

    def _wants_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_map and not self._open[-1].has_key

    def _close(self, event: Any) -> None:
        done = self._open.pop()
        for merged in done.merged:
            for key, value in merged.items():
                done.value.setdefault(key, value)
        if done.anchor:
            self._anchors[done.anchor] = done.value
        self._put(done.value, event)

    def _keep(self, event: Any, value: Any) -> None:
        if event.anchor:
            # Only where it stands does << mean a merge; who refers to it gets the text.
            self._anchors[event.anchor] = "<<" if value is _MERGE else value
        self._put(value, event)

    def _put(self, value: Any, event: Any) -> None:
        if not self._open:
            self.root = value
            return
        into = self._open[-1]
        if not into.is_map:
            into.value.append(value)
        elif not into.has_key:
            into.key, into.has_key = _key(value), True
            if into.key is not _MERGE and into.key in into.value:
                line = event.start_mark.line + 1
                self.repeated.append(f'line {line}: key "{into.key}" already set in map')
        else:
            into.has_key = False
            if into.key is _MERGE:
                into.merged += _mergeable(value)
            else:
                into.value[into.key] = value

    def _alias(self, anchor: str | None) -> Any:
        if any(item.anchor == anchor for item in self._open):
            raise BadYaml(f"yaml: anchor '{anchor}' value contains itself")
        if anchor is None or anchor not in self._anchors:
            raise BadYaml(f"yaml: unknown anchor '{anchor}' referenced")
        return self._copied(self._anchors[anchor], len(self._open))

    def _copied(self, value: Any, depth: int) -> Any:
        """Of its own for each alias: objects are changed in place later."""
        self._aliased += 1
        if self._aliased > _MAX_ALIASED:
            raise BadYaml("yaml: document contains excessive aliasing")
        if depth > MAX_DEPTH:
            raise BadYaml("yaml: exceeded max depth")
        if isinstance(value, dict):
            return {key: self._copied(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._copied(inner, depth + 1) for inner in value]
        return value


def _mergeable(value: Any) -> list[Any]:
    maps = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) for one in maps):
        raise BadYaml("yaml: map merge requires map or sequence of maps as the value")
    return maps


def _key(value: Any) -> Any:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return f"{value:g}"
        case _ if value is _MERGE:
            return value
        case _:
            raise BadYaml("yaml: invalid map key")


def _scalar(event: Any, is_key: bool) -> Any:
    tag = (event.tag or "").removeprefix(_CORE)
    if tag == "binary":
        return _binary(event.value)
    if event.implicit[0] or tag in ("int", "float", "bool", "null"):
        if is_key and event.value == "<<":
            return _MERGE
        return _plain(event.value)
    return event.value


def _binary(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise BadYaml("yaml: !!binary value contains invalid base64 data") from error


def _plain(text: str) -> Any:
    """A scalar without quotes and tag."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789" or len(text) > _LONGEST_NUMBER:
        return text
    digits = text.replace("_", "")
    if found := _INTEGER.fullmatch(digits):
        number = _whole(found)
        if -(2**63) <= number < 2**64:
            return number
    # Like Go: what does not fit 64 bits is a float if its digits are decimal, and a text otherwise.
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        return value if math.isfinite(value) else text
    if _NOT_FINITE.fullmatch(text):
        sign = "-" if text[0] == "-" else "+"
        name = "NaN" if text[-1] in "nN" else f"{sign}Inf"
        raise BadYaml(f"json: unsupported value: {name}")
    return text


def _whole(found: re.Match[str]) -> int:
    sign, digits = found.groups()
    base = _BASES.get(digits[:2], 8 if len(digits) > 1 and digits[0] == "0" else 10)
    number = int(digits.removeprefix("0o").removeprefix("0x").removeprefix("0b"), base)
    return -number if sign == "-" else number
