"""The part of Kubernetes' JSONPath that printer columns use.

    .spec.replicas   .metadata.labels.example\\.com/team   .spec.ports[0].port   .a[-1]   .a[0:2]
    .a[*]   .a.*   .spec['a']   .status.conditions[?(@.type=="Ready")].status   .a[?(@.b)]

`parse` gives None for anything else (unions, recursive descent), `find` None where the path does
not fit the object (an index out of range, a filter on something that is no list).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

MAX_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class Field:
    name: str


@dataclass(frozen=True, slots=True)
class Each:
    """Every value of a map or a list."""


@dataclass(frozen=True, slots=True)
class Slice:
    start: int | None
    stop: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class Index:
    at: int


@dataclass(frozen=True, slots=True)
class Filter:
    left: "tuple[Step, ...]"
    operator: str  # "" asks only whether there is something on the left
    right: Any


Step: TypeAlias = Field | Each | Slice | Index | Filter
Path: TypeAlias = tuple[Step, ...]

# Each alternative begins with its own character or bracket, so matching never backtracks far.
_STEP = re.compile(
    r"""
    \.(?P<star>\*)
    | \.(?P<field>(?:\\.|[^.\[\]\\,$@{} \t\r\n])+)
    | \[\?\((?P<filter>(?:[^"'()]|"[^"]*"|'[^']*')*)\)\]
    | \['(?P<key>[^']*)'\]
    | \[(?P<index>-?\d+)\]
    | \[(?P<slice>\*|-?\d*:-?\d*(?::\d*)?)\]
    """,
    re.VERBOSE,
)
_COMPARISON = re.compile(r"([^!<>=]+)(==|!=|<=|>=|<|>)(.+)")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


@lru_cache(maxsize=1024)
def parse(text: str) -> Path | None:
    if len(text) > MAX_LENGTH:
        return None
    steps: list[Step] = []
    at = 1 if text[:1] in ("$", "@") else 0
    while at < len(text):
        match = _STEP.match(text, at)
        found = _steps(match) if match else None
        if match is None or found is None:
            return () if text == "." else None
        steps.extend(found)
        at = match.end()
    return tuple(steps)


def _steps(match: re.Match[str]) -> Path | None:
    kind, body = match.lastgroup, match[match.lastgroup or 0]
    if kind == "star":
        return (Each(),)
    if kind == "field":
        return (Field(re.sub(r"\\(.)", r"\1", body)),)
    if kind == "key":  # read as fields: a dot in it must be escaped
        return parse(f".{body}")
    if kind == "index":
        return (Index(int(body)),)
    if kind == "slice":
        bounds = ["", ""] if body == "*" else body.split(":")
        start, stop, step = (int(b) if b else None for b in [*bounds, "", ""][:3])
        return (Slice(start, stop, step),)
    return _filter(body)


def _filter(body: str) -> Path | None:
    comparison = _COMPARISON.fullmatch(body)
    left = parse((comparison[1] if comparison else body).strip())
    if left is None:
        return None
    if comparison is None:
        return (Filter(left, "", None),)
    known, right = _literal(comparison[3].strip())
    return (Filter(left, comparison[2], right),) if known else None


def _literal(text: str) -> tuple[bool, Any]:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return True, text[1:-1]
    if text in ("true", "false"):
        return True, text == "true"
    if re.fullmatch(r"[+-]?\d+", text):
        return True, int(text)
    if re.fullmatch(r"[+-]?\d+\.\d+", text):
        return True, float(text)
    return False, None


def find(path: Path, thing: Any) -> list[Any] | None:
    values = [thing]
    for step in path:
        found = _walk(step, values)
        if found is None:
            return None
        values = found
    return values


def _walk(step: Step, values: Sequence[Any]) -> list[Any] | None:
    if isinstance(step, Field):
        return [v[step.name] for v in values if isinstance(v, dict) and step.name in v]
    if isinstance(step, Each):
        return [inner for v in values for inner in _values(v)]
    out: list[Any] = []
    for value in values:
        if value is None and not isinstance(step, Filter):
            continue
        picked = _pick(step, value) if isinstance(value, list) else None
        if picked is None:
            return None
        out += picked
    return out


def _values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _pick(step: Slice | Index | Filter, items: list[Any]) -> list[Any] | None:
    match step:
        case Index(at):
            return [items[at]] if -len(items) <= at < len(items) else None
        case Slice(start, stop, stride):
            return items[start:stop:stride] if stride != 0 else None
        case Filter(left, operator, right):
            try:
                return [item for item in items if _holds(left, operator, right, item)]
            except TypeError:  # the two sides cannot be compared
                return None


def _holds(left: Path, operator: str, right: Any, item: Any) -> bool:
    found = find(left, item)
    if not operator:
        return bool(found)
    if not found:
        return False
    if type(found[0]) is not type(right):
        raise TypeError
    return _COMPARISONS[operator](found[0], right)
