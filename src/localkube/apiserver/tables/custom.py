"""Rows of custom resources: the columns that their definitions ask for."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind, PrinterColumn
from localkube.apiserver.tables import jsonpath
from localkube.apiserver.tables.durations import UNKNOWN, since

_INT64 = 2.0**63
_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def custom_columns(kind: Kind, name: Obj, created: Obj) -> list[Obj]:
    """`name` and `created`: the two columns that any object has."""
    if not kind.printer_columns:
        return [name, created | {"name": "Age", "type": "date"}]
    return [name, *(_definition(column) for column in kind.printer_columns)]


def _definition(column: PrinterColumn) -> Obj:
    path = f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or path,
        "priority": column.priority,
    }


def custom_cells(kind: Kind, thing: Obj, now_s: float) -> list[Any]:
    metadata = thing["metadata"]
    if not kind.printer_columns:
        return [metadata.get("name", ""), since(metadata.get("creationTimestamp"), now_s)]
    return [
        metadata.get("name", ""),
        *(_cell(column, thing, now_s) for column in kind.printer_columns),
    ]


def _cell(column: PrinterColumn, thing: Obj, now_s: float) -> Any:
    path = jsonpath.parse(column.json_path)
    found = None if path is None else jsonpath.find(path, thing)
    if not found:
        return None
    if column.type == "date":
        return _age(found[0], now_s)
    convert = _CONVERSIONS.get(column.type)
    return convert(found[0]) if convert else None


def _age(value: Any, now_s: float) -> str | None:
    if not isinstance(value, str):
        return None
    return UNKNOWN if value in ("", "null") else since(value, now_s)


def _text(value: Any) -> str:
    match value:
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case float():
            return _float_text(value)
        case dict() | list():
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode().translate(_HTML)
        case _:
            return str(value)


def _float_text(value: float) -> str:
    """Go's %v: shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if value.is_integer() and abs(value) < _INT64:  # kept as a whole number there
        return str(int(value))
    sign, digits, shift = Decimal(repr(value)).normalize().as_tuple()
    exponent = len(digits) - 1 + int(shift)
    if -4 <= exponent < 6:
        return repr(value)
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    return f"{'-' * sign}{first}{fraction}e{exponent:+03d}"


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and type(value) is not bool else None


def _integer(value: Any) -> int | None:
    if not isinstance(value, int | float) or type(value) is bool:
        return None
    return int(value) if abs(value) < _INT64 else -(2**63)  # what Go makes of an overflow


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}
