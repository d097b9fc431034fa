"""estimated: what an expression may cost at most, by the bounds of the schema that it is about.

The figures are kube-apiserver's, its oddities included: a rule that it accepts must be accepted
here, too. What an expression really costs is counted when it runs (frame.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from localkube.apiserver.cel.call_costs import CALL_COSTS, Known, by_type
from localkube.apiserver.cel.parser import parse
from localkube.apiserver.cel.shapes import (
    ANY,
    BOOL,
    DYN,
    INT,
    ONE,
    STRING,
    UNBOUNDED,
    Shape,
    Size,
    is_scalar,
    list_of,
    optional,
)
from localkube.apiserver.cel.syntax import (
    Call,
    Choice,
    Index,
    ListOf,
    Literal,
    Logic,
    Loop,
    MapOf,
    Name,
    Node,
    Present,
    Select,
)
from localkube.apiserver.cel.values import type_name

_LIST, _MAP = 10, 30
_LITERALS = {"null_type": Shape("null"), "string": STRING, "bool": BOOL, "int": INT}


def estimated(expression: str, subject: Shape) -> int:
    """Of an expression that compiles, where `self` and `oldSelf` have the subject's shape."""
    return min(_Walk(subject).known(parse(expression)).cost, UNBOUNDED)


@dataclass(frozen=True, slots=True)
class _Variable:
    type: Shape
    path: Shape | None
    has_path: bool
    size: Size | None
    entry: Size | None = None


class _Walk:
    def __init__(self, subject: Shape) -> None:
        self._subject = subject
        self._variables: dict[str, _Variable] = {}

    def known(self, node: Node) -> Known:
        return _KNOWN[type(node)](self, node)

    def _made(self, cost: int, type_: Shape, size: Size | None = None, **more: Any) -> Known:
        """What has no place in the subject."""
        if size is None and is_scalar(type_):
            size = ONE
        return Known(cost, type_, size, **more)

    def _at(self, cost: int, type_: Shape, path: Shape | None, held: Size | None = None) -> Known:
        """What has a place in the subject, or had one that the schema does not know."""
        size = Size(0, path.most) if path else ONE if is_scalar(type_) else held
        return Known(cost, type_, size, path=path, has_path=True)

    def _below(self, value: Known, step: str) -> Shape | None:
        # What was made by the expression itself is looked up as if it were the subject.
        if not value.has_path:
            return self._subject
        return value.path.inner(step) if value.path else None

    def _literal(self, node: Literal) -> Known:
        kind = type_name(node.value)
        is_text = isinstance(node.value, str | bytes)
        size = Size(len(node.value), len(node.value)) if is_text else ONE
        literal = node.value if type(node.value) is int else None
        return self._made(0, _LITERALS.get(kind) or Shape(kind), size, literal=literal)

    def _name(self, node: Name) -> Known:
        found = self._variables.get(node.name)
        if found is None:
            is_self = node.name in ("self", "oldSelf")
            return self._at(1, self._subject if is_self else Shape("type"), self._subject)
        if found.has_path:
            return self._at(1, found.type, found.path, found.size)
        return self._made(1, found.type, found.size, entry=found.entry)

    def _select(self, node: Select) -> Known:
        if node.optional:
            operand = self.known(node.operand)
            return self._made(operand.cost + 1, optional(_field(operand.type, node.field)))
        operand = self.known(node.operand)
        cost = operand.cost + (operand.type.kind in ("map", "object"))
        found = _field(operand.type, node.field)
        return self._at(cost, found, self._below(operand, node.field))

    def _present(self, node: Present) -> Known:
        return self._made(self.known(node.operand).cost, BOOL)

    def _index(self, node: Index) -> Known:
        operand, key = self.known(node.operand), self.known(node.key)
        cost = operand.cost + key.cost + 1
        item = operand.type.items or DYN
        if node.optional or operand.type.kind == "optional":
            return self._made(cost, optional(item))
        found = self._at(cost, item, self._below(operand, "@item"))
        return found if operand.entry is None else replace(found, size=operand.entry)

    def _logic(self, node: Logic) -> Known:
        return self._made(sum(self.known(part).cost for part in node.parts), BOOL)

    def _choice(self, node: Choice) -> Known:
        condition, yes, no = map(self.known, (node.condition, node.yes, node.no))
        return self._either(condition.cost, yes, no)

    def _either(self, cost: int, yes: Known, no: Known) -> Known:
        size = (yes.size or ANY).joined(no.size or ANY)
        entry = yes.entry.joined(no.entry) if yes.entry and no.entry else None
        return self._made(cost + max(yes.cost, no.cost), yes.type, size, entry=entry)

    def _list(self, node: ListOf) -> Known:
        items = [self.known(item) for item, _ in node.items]
        kinds = {item.type.kind for item in items}
        type_ = list_of(items[0].type if len(kinds) == 1 else DYN)
        cost = _LIST + sum(item.cost for item in items)
        return self._made(cost, type_, Size(len(items), len(items)), entry=_all(items))

    def _map(self, node: MapOf) -> Known:
        keys = [self.known(key) for key, _, _ in node.entries]
        values = [self.known(value) for _, value, _ in node.entries]
        kinds = {value.type.kind for value in values}
        type_ = Shape("map", items=values[0].type if len(kinds) == 1 else DYN)
        cost = _MAP + sum(each.cost for each in (*keys, *values))
        size = Size(len(values), len(values))
        return self._made(cost, type_, size, entry=_all(values), keys=_all(keys))

    def _call(self, node: Call) -> Known:
        target = None if node.target is None else self._target(node.target)
        args = [self.known(arg) for arg in node.args]
        given = ([] if target is None else [target]) + args
        paid = sum(each.cost for each in given)
        if node.name == "dyn":
            return self._made(paid + 1, DYN, args[0].size, entry=args[0].entry)
        dotted = isinstance(node.target, Name) and target is None
        name = f"{node.target.name}.{node.name}" if dotted else node.name  # type: ignore[union-attr]
        call = CALL_COSTS.get(name, by_type)(name, target, args)
        return self._made(paid + call.cost, call.type, call.size, entry=call.entry)

    def _target(self, node: Node) -> Known | None:
        """None if it is the first half of a function's name, such as `sets.contains`."""
        is_variable = isinstance(node, Name) and (
            node.name in self._variables or node.name in ("self", "oldSelf")
        )
        return None if isinstance(node, Name) and not is_variable else self.known(node)

    def _loop(self, node: Loop) -> Known:
        over = self.known(node.over)
        if node.macro in ("optMap", "optFlatMap"):
            return self._with_held(node, over)
        kept = dict(self._variables)
        self._variables |= self._set(node.names, over)
        bodies = [self.known(arg) for arg in node.args]
        self._variables = kept
        size = over.size or ANY
        once, after, type_, entry = _round(node.macro, over, bodies)
        first = {"list": _LIST, "map": _MAP}.get(type_.kind, 0)
        cost = over.cost + first + size.most * once + after
        made = ONE if type_.kind == "bool" else size
        return self._made(min(cost, UNBOUNDED), type_, made, entry=entry)

    def _set(self, names: tuple[str, ...], over: Known) -> dict[str, _Variable]:
        item, is_map = over.type.items or DYN, over.type.kind in ("map", "object")
        value = _Variable(item, self._below(over, "@item"), True, over.entry)
        step = "@key" if is_map else "@index"
        first = STRING if is_map else INT
        key = _Variable(first, self._below(over, step), True, over.keys if is_map else ONE)
        if len(names) == 1:
            return {names[0]: key if is_map else value}
        return {names[0]: key, names[1]: value}

    def _with_held(self, node: Loop, over: Known) -> Known:
        """The value of an optional one, under a name."""
        kept = dict(self._variables)
        held = over.type.items or DYN
        size = ONE if is_scalar(held) else None
        self._variables[node.names[0]] = _Variable(held, None, False, size)
        body = self.known(node.args[0])
        self._variables = kept
        flat = node.macro == "optFlatMap"
        cost = _LIST + over.cost + 1 + body.cost + (not flat)
        yes = self._made(cost, body.type if flat else optional(body.type))
        return self._either(over.cost + 1, yes, self._made(1, DYN))


def _all(values: list[Known]) -> Size:
    found = Size(0, 0) if not values else values[0].size or ANY
    for value in values[1:]:
        found = found.joined(value.size or ANY)
    return found


def _field(type_: Shape, name: str) -> Shape:
    if type_.kind == "optional" and type_.items is not None:
        return optional(_field(type_.items, name))
    if type_.kind == "map" and type_.items is not None:
        return type_.items
    return type_.fields.get(name, DYN)


def _round(macro: str, over: Known, bodies: list[Known]) -> tuple[int, int, Shape, Size | None]:
    """What one round costs, and the end; what comes out, and how large its items may be."""
    *conditions, last = bodies
    checked = sum(each.cost for each in conditions)
    item = Size(0, (last.size or ANY).most)
    if macro == "all":
        return 3 + last.cost, 1, BOOL, None
    if macro == "exists":
        return 4 + last.cost, 1, BOOL, None
    if macro in ("exists_one", "existsOne"):
        return 2 + last.cost, 2, BOOL, None
    if macro == "filter":
        return 13 + last.cost, 1, list_of(over.type.items or DYN), over.entry
    if macro in ("map", "transformList"):
        return checked + 12 + last.cost, 1, list_of(last.type), item
    given = 3 if macro == "transformMap" else 2
    return checked + given + last.cost, 1, Shape("map", items=last.type), item


_KNOWN: dict[type, Callable[[_Walk, Any], Known]] = {
    Literal: _Walk._literal,
    Name: _Walk._name,
    Select: _Walk._select,
    Present: _Walk._present,
    Index: _Walk._index,
    Logic: _Walk._logic,
    Choice: _Walk._choice,
    ListOf: _Walk._list,
    MapOf: _Walk._map,
    Loop: _Walk._loop,
    Call: _Walk._call,
}
