"""compiled: from the text of an expression to a Program, which can be evaluated many times.

Names and functions are checked now; types only where they are known without the objects, which is
enough to refuse a validation that can never be true or false.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from localkube.apiserver.cel.errors import (
    CompileError,
    EvaluationError,
    OutOfBudget,
    no_such_overload,
)
from localkube.apiserver.cel.field_names import name_in
from localkube.apiserver.cel.frame import Frame, Run
from localkube.apiserver.cel.function import called, with_alternative
from localkube.apiserver.cel.functions import FUNCTIONS, UNSUPPORTED
from localkube.apiserver.cel.loops import LOOPS, keeping
from localkube.apiserver.cel.operators import OPERATORS
from localkube.apiserver.cel.optionals import given, optional_field, optional_item
from localkube.apiserver.cel.parser import parse
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
from localkube.apiserver.cel.types import (
    BOOL,
    DYN,
    LIST,
    MAP,
    OPTIONAL,
    UNKNOWN,
    Struct,
    Type,
    operator_result,
    type_text,
)
from localkube.apiserver.cel.values import (
    MixedKeys,
    Optional,
    TypeValue,
    has_key,
    looked_up,
    shown,
    type_name,
    with_entry,
)

# kube-apiserver's limit for one evaluation.
PER_CALL = 1_000_000
TOO_DEEP = "expression recursion limit exceeded"
OVER_LIMIT = "operation cancelled: actual cost limit exceeded"
_MAX_DEPTH = 100  # of the tree: each level is a call or two of Python
_LIST_COST, _MAP_COST = 10, 30  # and one for each item, which may cost nothing itself
_TYPE_NAMES = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"}
)


@dataclass(frozen=True, slots=True)
class Program:
    expression: str
    type: Type
    _run: Run

    def evaluate(self, names: Mapping[str, Any], budget: int = PER_CALL) -> tuple[Any, int]:
        """The value and what it cost. Raises EvaluationError and OutOfBudget."""
        frame = Frame(names, budget)
        try:
            return self._run(frame), budget - frame.left
        except EvaluationError as error:
            error.cost = budget - frame.left
            raise
        except RecursionError:  # an object may be as deep as its sender likes
            deep = EvaluationError(TOO_DEEP)
            deep.cost = budget - frame.left
            raise deep from None


class _Code(NamedTuple):
    run: Run
    type: Type


def compiled(expression: str, declared: Mapping[str, Type]) -> Program:
    """Raises CompileError."""
    try:
        code = _Compiler(expression, declared).code(parse(expression), 0)
    except RecursionError:
        raise CompileError(expression, 0, TOO_DEEP) from None
    return Program(expression, code.type, code.run)


class _Compiler:
    def __init__(self, expression: str, declared: Mapping[str, Type]) -> None:
        self._expression = expression
        self._declared = dict(declared)

    def code(self, node: Node, depth: int) -> _Code:
        if depth > _MAX_DEPTH:
            raise self._error(node, f"expression recursion limit exceeded: {_MAX_DEPTH}")
        return _CODE[type(node)](self, node, depth + 1)

    def _error(self, node: Node, why: str) -> CompileError:
        return CompileError(self._expression, node.at, why)

    def _undeclared(self, at: int, name: str) -> CompileError:
        why = f"undeclared reference to '{name}' (in container '')"
        if name in UNSUPPORTED:
            why += ": Kubernetes has it, this server does not"
            return CompileError(self._expression, at, why, missing=name)
        return CompileError(self._expression, at, why)

    def _literal(self, node: Literal, depth: int) -> _Code:
        value = node.value
        return _Code(lambda _: value, type_name(value))

    def _name(self, node: Name, depth: int) -> _Code:
        name = node.name
        if name in self._declared:

            def run(frame: Frame) -> Any:
                frame.charge(1)
                try:
                    return frame.names[name]
                except KeyError:
                    raise EvaluationError(f"no such attribute(s): {name}") from None

            return _Code(run, self._declared[name])
        if name in _TYPE_NAMES:
            value = TypeValue(name)
            return _Code(lambda _: value, "type")
        raise self._undeclared(node.at, name)

    def _select(self, node: Select, depth: int) -> _Code:
        if isinstance(node.operand, Name):
            dotted = f"{node.operand.name}.{node.field}"
            if dotted in self._declared:
                return self._name(Name(node.at, dotted), depth)
        operand, kind = self.code(node.operand, depth)
        result = self._field_type(node, kind)
        field = node.field
        if node.optional:
            return _Code(lambda frame: optional_field(frame, operand(frame), field), OPTIONAL)

        def run(frame: Frame) -> Any:
            frame.charge(1)
            value = operand(frame)
            if isinstance(value, Mapping):
                try:
                    return value[name_in(value, field)]
                except KeyError:
                    raise EvaluationError(f"no such key: {field}") from None
            if isinstance(value, Optional):
                return optional_field(frame, value, field)
            raise EvaluationError(f"no such key: {field}")

        return _Code(run, OPTIONAL if kind == OPTIONAL else result)

    def _field_type(self, node: Select | Present, kind: Type) -> Type:
        if isinstance(kind, Struct):
            if node.field not in kind.fields:
                raise self._error(node, f"undefined field '{node.field}'")
            return kind.fields[node.field]
        if kind in ("bool", "int", "uint", "double", "string", "bytes"):
            text = f"type '{kind}' does not support field selection"
            raise self._error(node, text)
        return DYN if kind == DYN else UNKNOWN

    def _present(self, node: Present, depth: int) -> _Code:
        operand = self.code(node.operand, depth)
        self._field_type(node, operand.type)
        field = node.field

        def run(frame: Frame) -> bool:
            value = operand.run(frame)
            if isinstance(value, Optional):
                value = value.values[0] if value.values else {}
            if value is None:
                return False
            if not isinstance(value, Mapping):
                raise EvaluationError(f"no such key: {field}")
            return name_in(value, field) in value

        return _Code(run, BOOL)

    def _index(self, node: Index, depth: int) -> _Code:
        operand, kind = self.code(node.operand, depth)
        key, _ = self.code(node.key, depth)
        if node.optional or kind == OPTIONAL:
            return _Code(lambda frame: optional_item(frame, operand(frame), key(frame)), OPTIONAL)

        def run(frame: Frame) -> Any:
            frame.charge(1)
            value = operand(frame)
            if isinstance(value, Optional):
                return optional_item(frame, value, key(frame))
            return looked_up(value, key(frame))

        return _Code(run, DYN if kind == DYN else UNKNOWN)

    def _logic(self, node: Logic, depth: int) -> _Code:
        """The deciding value wins over errors on either side."""
        parts = [self._bool(part, depth) for part in node.parts]
        deciding = node.sign == "||"

        def run(frame: Frame) -> bool:
            failed: EvaluationError | None = None
            for part in parts:
                frame.charge(1)
                try:
                    value = part(frame)
                    if not isinstance(value, bool):
                        raise no_such_overload()
                    if value is deciding:
                        return value
                except EvaluationError as error:
                    failed = failed or error
            if failed is not None:
                raise failed
            return not deciding

        return _Code(run, BOOL)

    def _bool(self, node: Node, depth: int) -> Run:
        run, kind = self.code(node, depth)
        if kind not in (BOOL, DYN, UNKNOWN):
            raise self._error(node, f"expected type 'bool' but found '{type_text(kind)}'")
        return run

    def _choice(self, node: Choice, depth: int) -> _Code:
        condition = self._bool(node.condition, depth)
        yes, no = self.code(node.yes, depth), self.code(node.no, depth)

        def run(frame: Frame) -> Any:
            frame.charge(1)
            chosen = condition(frame)
            if not isinstance(chosen, bool):
                raise no_such_overload()
            return (yes if chosen else no).run(frame)

        if yes.type == no.type:
            return _Code(run, yes.type)
        return _Code(run, UNKNOWN if UNKNOWN in (yes.type, no.type) else DYN)

    def _list(self, node: ListOf, depth: int) -> _Code:
        items = [(self.code(item, depth).run, optional) for item, optional in node.items]

        def run(frame: Frame) -> list[Any]:
            frame.charge(_LIST_COST + len(items))
            found: list[Any] = []
            for item, optional in items:
                value = item(frame)
                found += given(value) if optional else (value,)
            return found

        return _Code(run, LIST)

    def _map(self, node: MapOf, depth: int) -> _Code:
        entries = [
            (self.code(key, depth).run, self.code(value, depth).run, optional)
            for key, value, optional in node.entries
        ]

        def run(frame: Frame) -> Mapping[Any, Any]:
            frame.charge(_MAP_COST + len(entries))
            found: dict[Any, Any] | MixedKeys = {}
            for key, value, optional in entries:
                name, made = key(frame), value(frame)
                if not isinstance(name, str | int | bool):
                    raise EvaluationError(f"unsupported key type: {type_name(name)}")
                if has_key(found, name):
                    raise EvaluationError(f"Failed with repeated key: {shown(name)}")
                for each in given(made) if optional else (made,):
                    found = with_entry(found, name, each)
            return found

        return _Code(run, MAP)

    def _loop(self, node: Loop, depth: int) -> _Code:
        over, kind = self.code(node.over, depth)
        if kind in ("bool", "int", "uint", "double", "string", "bytes"):
            text = f"expression of type '{kind}' cannot be range of a comprehension"
            raise self._error(node.over, f"{text} (must be list, map, or dynamic)")
        kept = {name: self._declared[name] for name in node.names if name in self._declared}
        self._declared |= dict.fromkeys(node.names, DYN if kind == DYN else UNKNOWN)
        bodies = [self.code(arg, depth) for arg in node.args]
        for name in node.names:
            del self._declared[name]
        self._declared |= kept
        made, result = LOOPS[node.macro]
        run = made(over, node.names, *(body.run for body in bodies))
        return _Code(keeping(node.names, run), result)

    def _call(self, node: Call, depth: int) -> _Code:
        if node.name in OPERATORS:
            return self._operator(node, depth)
        target, name = node.target, node.name
        if isinstance(target, Name) and target.name not in self._declared:
            dotted = f"{target.name}.{name}"
            if dotted not in FUNCTIONS and dotted not in UNSUPPORTED:
                raise self._undeclared(target.at, target.name)
            name, target = dotted, None
        function = FUNCTIONS.get(name)
        parts = ([] if target is None else [target]) + list(node.args)
        if function is None:
            raise self._undeclared(node.at, name)
        args = [self.code(arg, depth) for arg in parts]
        if not function.accepts(len(args), method=target is not None):
            types = [type_text(arg.type) for arg in args]
            shape = f"{types[0]}.({', '.join(types[1:])})" if target else f"({', '.join(types)})"
            text = f"found no matching overload for '{name}' applied to '{shape}'"
            raise self._error(node, text)
        made = with_alternative if name in ("or", "orValue") else called
        return _Code(made(function, [arg.run for arg in args]), function.result)

    def _operator(self, node: Call, depth: int) -> _Code:
        args = [self.code(arg, depth) for arg in node.args]
        types = [arg.type for arg in args]
        result: Type | None
        if len(args) == 2:
            result = operator_result(node.name, types[0], types[1])
        else:
            wanted = (BOOL,) if node.name == "!_" else ("int", "double")
            result = types[0] if types[0] in (*wanted, DYN, UNKNOWN) else None
            if result is not None and node.name == "!_":
                result = BOOL
        if result is None:
            shape = ", ".join(map(type_text, types))
            text = f"found no matching overload for '{node.name}' applied to '({shape})'"
            raise self._error(node, text)
        operate = OPERATORS[node.name]
        if len(args) == 1:
            only = args[0].run
            return _Code(lambda frame: operate(frame, only(frame)), result)
        left, right = args[0].run, args[1].run

        def run(frame: Frame) -> Any:
            frame.charge(1)
            return operate(frame, left(frame), right(frame))

        return _Code(run, result)


_CODE: dict[type, Callable[[_Compiler, Any, int], _Code]] = {
    Literal: _Compiler._literal,
    Name: _Compiler._name,
    Select: _Compiler._select,
    Present: _Compiler._present,
    Index: _Compiler._index,
    Logic: _Compiler._logic,
    Choice: _Compiler._choice,
    ListOf: _Compiler._list,
    MapOf: _Compiler._map,
    Loop: _Compiler._loop,
    Call: _Compiler._call,
}


def problem_of(error: EvaluationError | OutOfBudget) -> str:
    return OVER_LIMIT if isinstance(error, OutOfBudget) else str(error)
