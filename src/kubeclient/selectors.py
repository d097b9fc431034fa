"""Label and field selectors: parsed once, matched often.

Two grammars; requirements are separated by commas, and all must hold:

    labels   key   !key   key=v   key==v   key!=v   key in (v,w)   key notin (v,w)   key>1   key<1
    fields   path=v   path==v   path!=v        (in values, \\ escapes comma, equals sign and itself)

Parsing is one linear pass. A match of a large selector costs what the object's labels cost. Errors
are SelectorError with the message of Kubernetes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from kubeclient.labels import are_values, key_complaints, value_complaints
from kubeclient.wide_selector import WideSelector

MAX_BYTES = 4096

_TOKEN = re.compile(r"[ \t\r\n]+|(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 19
_INT64 = 2**63


class SelectorError(ValueError):
    """A selector that cannot be parsed; the message is that of Kubernetes."""


class Operator(Enum):
    """The value is Kubernetes' own spelling in error texts."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER = "gt"
    LESS = "lt"
    EXISTS = "exists"
    ABSENT = "!"


_BINARY = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}
_BINARY_NAMES = ", ".join(operator.value for operator in _BINARY.values())
_ONE_OF = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_NONE_OF = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})
_SETS = frozenset({Operator.IN, Operator.NOT_IN})
_UNARY = frozenset({Operator.EXISTS, Operator.ABSENT})
_ORDERED = frozenset({Operator.GREATER, Operator.LESS})
_OF_EXPRESSIONS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.ABSENT,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Operator
    values: tuple[str, ...] = ()  # sorted

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator in _ONE_OF:
            return value in self.values
        if self.operator in _NONE_OF:
            return value not in self.values
        if self.operator is Operator.EXISTS:
            return value is not None
        if self.operator is Operator.ABSENT:
            return value is None
        found, wanted = integer(value), integer(self.values[0])
        if found is None or wanted is None:
            return False
        return found > wanted if self.operator is Operator.GREATER else found < wanted

    @property
    def text(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.ABSENT:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator.value} ({','.join(self.values)})"
            case Operator.GREATER:
                return f"{self.key}>{self.values[0]}"
            case Operator.LESS:
                return f"{self.key}<{self.values[0]}"
            case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.NOT_EQUALS:
                return f"{self.key}{self.operator.value}{self.values[0]}"


# Keys and values up to which a selector is matched requirement by requirement.
_FEW = 16


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; sorted by key. Without any: matches all, or nothing."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    _wide: WideSelector | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if sum(1 + len(each.values) for each in self.requirements) > _FEW:
            object.__setattr__(self, "_wide", _wide(self.requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self._wide is not None:
            return self._wide.matches(labels)
        for requirement in self.requirements:  # a loop, not all(): this is run per object of a list
            if not requirement.matches(labels):
                return False
        return not self.nothing

    @property
    def text(self) -> str:
        return ",".join(requirement.text for requirement in self.requirements)

    @property
    def everything(self) -> bool:
        return not self.requirements and not self.nothing


def _wide(requirements: Sequence[Requirement]) -> WideSelector | None:
    """None: numbers are compared one by one. Only selectors of a few KiB, in URLs, have any."""
    if any(each.operator in _ORDERED for each in requirements):
        return None

    def values(operators: frozenset[Operator]) -> list[tuple[str, tuple[str, ...]]]:
        return [(each.key, each.values) for each in requirements if each.operator in operators]

    return WideSelector(
        one_of=values(_ONE_OF),
        none_of=values(_NONE_OF),
        present=[each.key for each in requirements if each.operator is Operator.EXISTS],
        absent=[each.key for each in requirements if each.operator is Operator.ABSENT],
    )


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """`path` has `value`, or must not have it. A field that is not there has the value ""."""

    path: str
    equal: bool
    value: str

    @property
    def text(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.path}{'=' if self.equal else '!='}{escaped}"


@lru_cache(maxsize=1024)
def parse_label_selector(text: str) -> LabelSelector:
    _check_size(text)
    tokens = _Tokens(text)
    requirements: list[Requirement] = []
    while not tokens.ended:
        if not tokens.is_word and tokens.peek != "!":
            raise SelectorError(
                f"found '{tokens.peek}', expected: !, identifier, or 'end of string'"
            )
        try:
            requirements.append(_parse_requirement(tokens))
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        _end_of_requirement(tokens)
    return LabelSelector(tuple(sorted(requirements, key=lambda r: r.key)))


def from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """A LabelSelector as objects carry it. An absent one selects nothing, an empty one all."""
    if selector is None:
        return NOTHING
    found = [
        _checked(key, Operator.EQUALS, (value,))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        name = expression.get("operator", "")
        operator = _OF_EXPRESSIONS.get(name)
        if operator is None:
            raise SelectorError(f"{_quoted(name)} is not a valid label selector operator")
        values = tuple(expression.get("values") or ())
        found.append(_checked(expression.get("key", ""), operator, values))
    return LabelSelector(tuple(sorted(found, key=lambda r: r.key)))


@lru_cache(maxsize=1024)
def parse_field_selector(text: str) -> tuple[FieldRequirement, ...]:
    _check_size(text)
    found = []
    for term in sorted(_split_terms(text)):
        if not term:
            continue
        at = min((i for i in (term.find("="), term.find("!=")) if i >= 0), default=-1)
        if at < 0:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        operator = next(o for o in ("!=", "==", "=") if term.startswith(o, at))
        value = _unescaped(term[at + len(operator) :])
        found.append(FieldRequirement(term[:at], operator != "!=", value))
    return tuple(found)


class _Tokens:
    """The words and symbols of a label selector, and how far they have been read."""

    def __init__(self, text: str) -> None:
        self._tokens = [token for token in _TOKEN.findall(text) if token]
        self._at = 0

    @property
    def peek(self) -> str:
        return "" if self.ended else self._tokens[self._at]

    @property
    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    @property
    def is_word(self) -> bool:
        return not self.ended and self.peek not in _SYMBOLS

    def take(self) -> str:
        token = self.peek
        self._at += 1
        return token


def _end_of_requirement(tokens: _Tokens) -> None:
    if tokens.ended:
        return
    comma = tokens.take()
    if comma != ",":
        raise SelectorError(f"found '{comma}', expected: ',' or 'end of string'")
    if not tokens.is_word and tokens.peek != "!":
        raise SelectorError(f"found '{tokens.peek}', expected: identifier after ','")


def _parse_requirement(tokens: _Tokens) -> Requirement:
    absent = tokens.peek == "!"
    if absent:
        tokens.take()
    if not tokens.is_word:
        raise SelectorError(f"found '{tokens.peek}', expected: identifier")
    key = tokens.take()
    if complaints := key_complaints(key):
        raise SelectorError(_invalid("<nil>", key, "; ".join(complaints)))
    if absent:
        return _checked(key, Operator.ABSENT, ())
    if tokens.ended or tokens.peek == ",":
        return _checked(key, Operator.EXISTS, ())
    operator = _BINARY.get(tokens.peek)
    if operator is None:
        raise SelectorError(f"found '{tokens.peek}', expected: {_BINARY_NAMES}")
    tokens.take()
    values = _parse_set(tokens) if operator in _SETS else _parse_value(tokens)
    return _checked(key, operator, values)


def _parse_value(tokens: _Tokens) -> tuple[str]:
    if tokens.ended or tokens.peek == ",":
        return ("",)
    if not tokens.is_word:
        raise SelectorError(f"found '{tokens.peek}', expected: identifier")
    return (tokens.take(),)


def _parse_set(tokens: _Tokens) -> tuple[str, ...]:
    """`(a,b)`; an empty place between commas or brackets is the empty value."""
    if tokens.peek != "(":
        raise SelectorError(f"found '{tokens.peek}' expected: '('")
    tokens.take()
    if not tokens.is_word and tokens.peek not in (",", ")"):
        raise SelectorError(f"found '{tokens.peek}', expected: ',', ')' or identifier")
    values: set[str] = set()
    while True:
        if tokens.is_word:
            values.add(tokens.take())
            if tokens.peek not in (",", ")"):
                raise SelectorError(f"found '{tokens.peek}', expected: ',' or ')'")
        elif tokens.peek in (",", ")"):
            values.add("")
        else:
            raise SelectorError(f"found '{tokens.peek}', expected: ',', or identifier")
        if tokens.take() == ")":
            return tuple(sorted(values))


def _checked(key: str, operator: Operator, values: Sequence[str]) -> Requirement:
    errors = [_invalid("key", key, "; ".join(c)) for c in [key_complaints(key)] if c]
    errors += _arity_errors(operator, values)
    for i, value in enumerate(() if are_values(values) else values):
        if complaints := value_complaints(value):
            errors.append(_invalid(f"values[{i}][{key}]", value, "; ".join(complaints)))
    if errors:
        listed = list(dict.fromkeys(errors))
        raise SelectorError(listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]")
    return Requirement(key, operator, tuple(sorted(values)))


def _arity_errors(operator: Operator, values: Sequence[str]) -> list[str]:
    if operator in _SETS and not values:
        detail = "for 'in', 'notin' operators, values set can't be empty"
        return [_invalid("values", list(values), detail)]
    if operator in _UNARY and values:
        detail = "values set must be empty for exists and does not exist"
        return [_invalid("values", list(values), detail)]
    if operator in _ORDERED and integer(values[0]) is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        return [_invalid("values[0]", values[0], detail)]
    return []


def _split_terms(text: str) -> list[str]:
    terms, start, escaped = [], 0, False
    for i, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            terms.append(text[start:i])
            start = i + 1
    return [*terms, text[start:]]


def _unescaped(value: str) -> str:
    characters = iter(value)
    out = []
    for character in characters:
        if character == "\\":
            follower = next(characters, "")
            if follower not in ("\\", ",", "="):
                sequence = f"\\{follower}"
                raise SelectorError(f"invalid field selector: invalid escape sequence: {sequence}")
            out.append(follower)
        elif character in ",=":
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(character)}"
            )
        else:
            out.append(character)
    return "".join(out)


def integer(text: str | None) -> int | None:
    """A number as Go reads an int64 (Python's int() takes more)."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MOST_DIGITS:  # int() raises ValueError for thousands of them
        return None
    number = -int(digits or "0") if text[0] == "-" else int(digits or "0")
    return number if -_INT64 <= number < _INT64 else None


def _check_size(text: str) -> None:
    if len(text) > MAX_BYTES:
        raise SelectorError(f"selector too long: may not be more than {MAX_BYTES} bytes")


def _invalid(field: str, value: Any, detail: str) -> str:
    return f"{field}: Invalid value: {_quoted(value)}: {detail}"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
