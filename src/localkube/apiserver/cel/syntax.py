"""The parts of an expression. `at` is where each begins in the text."""

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    at: int
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    at: int
    operand: "Node"
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Present:
    """has(operand.field)"""

    at: int
    operand: "Node"
    field: str


@dataclass(frozen=True, slots=True)
class Index:
    at: int
    operand: "Node"
    key: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or an operator by the name that cel-go gives it (`_+_`)."""

    at: int
    name: str
    target: "Node | None"
    args: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """`&&` or `||` of any number of conditions: a long chain is not a deep tree."""

    at: int
    sign: str
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    at: int
    condition: "Node"
    yes: "Node"
    no: "Node"


@dataclass(frozen=True, slots=True)
class ListOf:
    at: int
    items: tuple[tuple["Node", bool], ...]  # and whether an optional without value is left out


@dataclass(frozen=True, slots=True)
class MapOf:
    at: int
    entries: tuple[tuple["Node", "Node", bool], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A macro over a list or a map: `names` are set for each of its items."""

    at: int
    macro: str
    over: "Node"
    names: tuple[str, ...]
    args: tuple["Node", ...]


Node: TypeAlias = (
    Literal | Name | Select | Present | Index | Call | Logic | Choice | ListOf | MapOf | Loop
)
