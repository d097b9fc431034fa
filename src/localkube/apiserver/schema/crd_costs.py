"""What the CEL rules of a CRD may cost at most: those that could cost too much are not stored.

How often a rule may run and how long its values may be, the schema says, or the largest request.
Limits and texts are kube-apiserver's.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.cel.errors import CompileError
from localkube.apiserver.cel.estimate import estimated
from localkube.apiserver.cel.field_names import escaped
from localkube.apiserver.cel.shapes import UNBOUNDED, Shape
from localkube.apiserver.schema.crd_cel import complaint
from localkube.apiserver.status import FieldError

PER_RULE = 10_000_000
PER_SCHEMA = 100_000_000
_REQUEST = 3 << 20  # bytes of the largest request
_MOST_NAMED = 4
_ADVICE = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared"
)
_CONTRIBUTED = (
    "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
)
_WHOLE = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
# In bytes of JSON: what a value of the format has at least and at most.
_FORMATS = {
    "duration": Shape("duration", 32, 3),
    "date": Shape("timestamp", 12, 12),
    "date-time": Shape("timestamp", 32, 21),
}
_OF_OBJECTS = {
    "apiVersion": Shape("string", _REQUEST - 2),
    "kind": Shape("string", _REQUEST - 2),
    "metadata": Shape(
        "object",
        fields=dict.fromkeys(("name", "generateName"), Shape("string", _REQUEST - 2)),
    ),
}


class _Priced(NamedTuple):
    place: str
    cost: int


def cost_errors(schema: Obj, place: str) -> Iterator[FieldError]:
    """Of a schema that is in order otherwise."""
    if not _has_rules(schema):
        return
    shapes = _Shapes()
    shapes.of(schema, is_root=True)
    priced = list(_prices(schema, place, 1, shapes))
    for each in priced:
        if each.cost > PER_RULE:
            what = each.place.rpartition(".")[2]
            said = _exceeds(f"estimated {what} cost", each.cost, PER_RULE)
            yield status.forbidden_field(each.place, said)
    total = min(sum(each.cost for each in priced), UNBOUNDED)
    if total > PER_SCHEMA:
        dear = sorted(priced, key=lambda each: -each.cost)[:_MOST_NAMED]
        for each in dear:
            if each.cost >= PER_SCHEMA // 100:
                yield status.forbidden_field(each.place, _CONTRIBUTED)
        yield status.forbidden_field(place, _exceeds(_WHOLE, total, PER_SCHEMA))


def _exceeds(what: str, cost: int, limit: int) -> str:
    times = cost / limit
    exact = f"{times:f}" if times < 1.5 else f"{times:.1f}"
    factor = "more than 100" if times > 100 else exact
    return f"{what} exceeds budget by factor of {factor}x ({_ADVICE})"


def _has_rules(schema: Obj) -> bool:
    return bool(schema.get("x-kubernetes-validations")) or any(
        _has_rules(inner) for inner, _ in _inner(schema, "")
    )


def _prices(schema: Obj, place: str, times: int | None, shapes: "_Shapes") -> Iterator[_Priced]:
    """`times`: how often this part can be there; None if only the request's size says it."""
    inner_times = times
    if times is not None and (bound := _repeats(schema)) is not None:
        inner_times = None if bound < 0 else times * bound
    for inner, where in _inner(schema, place):
        yield from _prices(inner, where, inner_times, shapes)
    rules = schema.get("x-kubernetes-validations") or ()
    subject = shapes.of(schema) if rules else None
    if subject is None:
        return
    often = _REQUEST // (subject.smallest + 1) if times is None else times
    for number, rule in enumerate(rules):
        where = f"{place}.x-kubernetes-validations[{number}]"
        yield _Priced(f"{where}.rule", min(_price(rule.get("rule"), subject) * often, UNBOUNDED))
        if said := rule.get("messageExpression"):
            yield _Priced(f"{where}.messageExpression", _price(said, subject))


def _price(expression: Any, subject: Shape) -> int:
    """Nothing if it is not judged: whoever wrote it has been told."""
    if not isinstance(expression, str) or not expression.strip() or complaint(expression):
        return 0
    try:
        return estimated(expression, subject)
    except (CompileError, RecursionError):
        return 0


def _inner(schema: Obj, place: str) -> Iterator[tuple[Obj, str]]:
    if isinstance(below := schema.get("items"), dict):
        yield below, f"{place}.items"
    for name, field in sorted((schema.get("properties") or {}).items()):
        yield field, f"{place}.properties[{name}]"
    if isinstance(below := schema.get("additionalProperties"), dict):
        yield below, f"{place}.additionalProperties"


def _repeats(schema: Obj) -> int | None:
    """How many parts are in this one at most: -1 if nobody says it, None if it is just one."""
    if schema.get("type") == "array":
        return int(schema.get("maxItems", -1))
    if schema.get("type") == "object" and schema.get("additionalProperties"):
        return int(schema.get("maxProperties", -1))
    return None


def shape_of(schema: Obj, *, is_root: bool = False) -> Shape | None:
    """None: CEL does not see a value of this schema."""
    return _Shapes().of(schema, is_root=is_root)


class _Shapes:
    """Each part of a schema is looked at once, also if every level has rules of its own."""

    def __init__(self) -> None:
        self._kept: dict[int, Shape | None] = {}

    def of(self, schema: Any, *, is_root: bool = False) -> Shape | None:
        if not isinstance(schema, dict):
            return None
        if id(schema) not in self._kept:
            self._kept[id(schema)] = self._made(schema, is_root=is_root)
        return self._kept[id(schema)]

    def _made(self, schema: Obj, *, is_root: bool) -> Shape | None:
        if schema.get("x-kubernetes-int-or-string"):
            return Shape("dyn", _characters(schema), 1)
        match str(schema.get("type")):
            case "array":
                return self._list(schema)
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                return self._map(schema)
            case "object":
                return self._object(schema, has_names=is_root or _is_embedded(schema))
            case "string":
                return _text_shape(schema)
            case "boolean":
                return Shape("bool", smallest=4)
            case "number":
                return Shape("double", smallest=1)
            case "integer":
                return Shape("int", smallest=1)
            case _:
                return None

    def _list(self, schema: Obj) -> Shape | None:
        items = self.of(schema.get("items"))
        if items is None:
            return None
        most = schema.get("maxItems", (_REQUEST - 2) // (items.smallest + 1))
        return Shape("list", max(int(most), 0), items=items)

    def _map(self, schema: Obj) -> Shape | None:
        values = self.of(schema["additionalProperties"])
        if values is None:
            return None
        most = schema.get("maxProperties", (_REQUEST - 2) // (values.smallest + 6))
        return Shape("map", max(int(most), 0), items=values)

    def _object(self, schema: Obj, *, has_names: bool) -> Shape:
        fields, smallest = dict(_OF_OBJECTS) if has_names else {}, 2
        required = set(schema.get("required") or ())
        for name, field in (schema.get("properties") or {}).items():
            shape = self.of(field)
            if shape is None or (has_names and name in _OF_OBJECTS):
                continue
            fields[escaped(name)] = shape
            if name in required and field.get("default") is None:
                smallest += len(name.encode()) + shape.smallest + 4
        return Shape("object", smallest=smallest, fields=fields)


def _is_embedded(schema: Obj) -> bool:
    return schema.get("x-kubernetes-embedded-resource") is True


def _text_shape(schema: Obj) -> Shape:
    form = schema.get("format")
    if form in _FORMATS:
        return _FORMATS[form]
    if form == "byte":
        return Shape("bytes", max(int(schema.get("maxLength", _REQUEST - 2)), 0))
    words = schema.get("enum")
    if words and "maxLength" not in schema:
        lengths = (len(word.encode()) for word in words if isinstance(word, str))
        return Shape("string", max(lengths, default=0))
    return Shape("string", _characters(schema))


def _characters(schema: Obj) -> int:
    """A character has up to four bytes."""
    return max(int(schema["maxLength"]), 0) * 4 if "maxLength" in schema else _REQUEST - 2
