"""Are custom objects as their CRD's schema wants them? In the words of kube-apiserver."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jsonschema_rs
import orjson

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.decode.weight import at_most
from localkube.apiserver.schema.formats import FORMATS
from localkube.apiserver.schema.node import Schema, Type
from localkube.apiserver.schema.patterns import BadPattern, translated
from localkube.apiserver.status import FieldError

Path = list[str | int]
_COPIED = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "format",
)
# A pattern takes at most so much memory. Such as are larger are not evaluated.
_ENGINE = jsonschema_rs.RegexOptions(size_limit=2 * 1024 * 1024)
_WRITTEN = "x-written-pattern"  # which stands in errors
_MOST_VALUES = 5_000  # of an object whose errors are all told
_COMBINED = ("allOf", "anyOf", "oneOf")
_JSON_NAMES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


class Values:
    """Judges the objects of one CRD version."""

    def __init__(self, openapi_schema: Obj, schema: Schema) -> None:
        self._schema = schema
        self._has_lists = _has_associative_lists(schema)
        self._rules = json_schema(openapi_schema)
        self._validator = jsonschema_rs.Draft4Validator(
            self._rules,
            formats=FORMATS,
            validate_formats=True,
            pattern_options=_ENGINE,
        )

    def parts(self) -> list[object]:
        """The large ones (let_go in structural.py)."""
        return [self._rules, self._validator]

    def errors(self, value: Any) -> list[FieldError]:
        found: list[FieldError] = []
        if not self._validator.is_valid(value):
            for error in self._errors_of(value):
                found += _worded(error, self._rules)
            found = _first_of_texts(found)
        if self._has_lists:
            found += _duplicates(value, self._schema, "")
        return found

    def _errors_of(self, value: Any) -> Iterable[jsonschema_rs.ValidationError]:
        """All of them; of a huge object the first one. They are found in one call, during which no
        other thread runs: 8 us for each."""
        if at_most(value, _MOST_VALUES):
            return self._validator.iter_errors(value)
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return (error,)
        return ()


def _first_of_texts(errors: list[FieldError]) -> list[FieldError]:
    """A text that is too long or too short is not held against its pattern, too."""
    lengths = {error.field for error in errors if _LENGTH in error.message or _is_long(error)}
    return [
        error
        for error in errors
        if error.field not in lengths or f"{error.field} in body should match" not in error.message
    ]


_LENGTH = "chars long"


def _is_long(error: FieldError) -> bool:
    return error.reason == "FieldValueTooLong"


def searchable(pattern: str) -> str:
    """The pattern in the language of the engine, which takes linear time; empty if it is too large
    for it, or no pattern."""
    try:
        made = translated(pattern)
        jsonschema_rs.Draft4Validator({"pattern": made}, pattern_options=_ENGINE)
    except (BadPattern, ValueError):
        return ""
    return made


def json_schema(node: Obj) -> Obj:
    """A CRD's OpenAPI schema as plain JSON Schema, draft 4."""
    result: Obj = {key: node[key] for key in _COPIED if key in node}
    if types := _types(node):
        result["type"] = types
    if "pattern" in node and (pattern := searchable(node["pattern"])):
        result |= {"pattern": pattern, _WRITTEN: node["pattern"]}
    if node.get("enum"):
        result["enum"] = [*node["enum"], None] if node.get("nullable") is True else node["enum"]
    required = [*node.get("required", ())]
    if node.get("x-kubernetes-embedded-resource") is True:
        required += ["apiVersion", "kind"]
    if required:
        result["required"] = sorted(set(required))
    _copy_inner(node, result)
    return result


def _types(node: Obj) -> list[str]:
    if node.get("x-kubernetes-int-or-string") is True:
        types = ["integer", "string"]
    else:
        types = [node["type"]] if node.get("type") else []
    return [*types, "null"] if types and node.get("nullable") is True else types


def _copy_inner(node: Obj, result: Obj) -> None:
    if "properties" in node:
        result["properties"] = {
            key: json_schema(inner) for key, inner in node["properties"].items()
        }
    for key in ("items", "additionalProperties", "not"):
        if isinstance(node.get(key), dict):
            result[key] = json_schema(node[key])
    for key in _COMBINED:
        if node.get(key):
            result[key] = [json_schema(inner) for inner in node[key]]


def _worded(error: Any, rules: Obj) -> Iterator[FieldError]:
    keyword = next(part for part in reversed(error.schema_path) if isinstance(part, str))
    place = _text(error.instance_path)
    limit = _BESIDE.get(keyword, keyword)
    wanted = _at(rules, [*error.schema_path[:-1], limit])
    if keyword in _CHOICE_TEXTS:
        yield _choice(_CHOICE_TEXTS[keyword], place, type(error.kind).__name__, error)
        # Kubernetes goes on with what the first choice wants.
        for inner in (getattr(error.kind, "context", None) or [[]])[0]:
            yield from _worded(inner, rules)
    elif keyword == "required":
        yield status.required(f"{place}.{error.kind.property}".lstrip("."))
    else:
        yield _WORDINGS.get(keyword, _other)(place, error.instance, wanted)
    if "allOf" in error.schema_path[:-1]:
        yield _combination(place, "must validate all the schemas (allOf)")


# Draft 4 says only that a limit is exclusive; the limit stands beside it.
_BESIDE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum", "pattern": _WRITTEN}


def _at(rules: Any, path: Path) -> Any:
    for part in path:
        if isinstance(rules, dict):
            rules = rules.get(str(part))
        elif isinstance(rules, list) and isinstance(part, int) and part < len(rules):
            rules = rules[part]
    return rules


def _text(path: Path) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).lstrip(".")


_CHOICE_TEXTS = {
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf). Found none valid",
    "not": "must not validate the schema (not)",
}


def _choice(text: str, place: str, kind: str, error: Any) -> FieldError:
    if kind == "OneOfMultipleValid":
        valid = sum(not errors for errors in error.kind.context)
        text = text.replace("none valid", f"{valid} valid alternatives")
    return _combination(place, text)


def _combination(place: str, text: str) -> FieldError:
    return FieldError("<nil>", "FieldValueInvalid", f'Invalid value: "": "{place}" {text}')


def _wrong_type(place: str, value: Any, wanted: Any) -> FieldError:
    found = _JSON_NAMES.get(type(value), "number")
    names = wanted if isinstance(wanted, list) else [wanted]
    types = ",".join(name for name in names if name != "null")
    text = f'Invalid value: "{found}": {place} in body must be of type {types}: "{found}"'
    return FieldError(place, "FieldValueTypeInvalid", text)


def _wrong_format(place: str, value: Any, wanted: Any) -> FieldError:
    shown = orjson.dumps(value).decode()
    text = f"Invalid value: {shown}: {place} in body must be of type {wanted}: {shown}"
    return FieldError(place, "FieldValueTypeInvalid", text)


def _enum(place: str, value: Any, wanted: Any) -> FieldError:
    choices = [one if isinstance(one, str) else orjson.dumps(one).decode() for one in wanted]
    return status.not_supported(place, value, choices)


def _says(text: str) -> Callable[[str, Any, Any], FieldError]:
    def worded(place: str, value: Any, wanted: Any) -> FieldError:
        shown = value if isinstance(value, (str, int, float)) else len(value)
        limit = wanted if isinstance(wanted, str) else orjson.dumps(wanted).decode()
        return status.invalid_value(place, shown, f"{place} in body {text.format(limit)}")

    return worded


def _other(place: str, value: Any, wanted: Any) -> FieldError:
    return status.invalid_value(place, value, f"{place} in body is not valid")


_WORDINGS: dict[str, Callable[[str, Any, Any], FieldError]] = {
    "type": _wrong_type,
    "format": _wrong_format,
    "enum": _enum,
    "pattern": _says("should match '{}'"),
    "minLength": _says("should be at least {} chars long"),
    "maxLength": lambda place, value, wanted: status.too_long(place, wanted),
    "minimum": _says("should be greater than or equal to {}"),
    "maximum": _says("should be less than or equal to {}"),
    "exclusiveMinimum": _says("should be greater than {}"),
    "exclusiveMaximum": _says("should be less than {}"),
    "multipleOf": _says("should be a multiple of {}"),
    "minItems": _says("should have at least {} items"),
    "maxItems": lambda place, value, wanted: status.too_many(place, len(value), wanted),
    "minProperties": _says("should have at least {} properties"),
    "maxProperties": lambda place, value, wanted: status.too_many(place, len(value), wanted),
}


def _has_associative_lists(schema: Schema | None) -> bool:
    if schema is None or schema.definition:
        return False
    if schema.type is Type.LIST and schema.list_type != "atomic":
        return True
    return _has_associative_lists(schema.items) or any(
        map(_has_associative_lists, schema.fields.values())
    )


def _duplicates(value: Any, schema: Schema, place: str) -> Iterator[FieldError]:
    if schema.definition:
        return
    if schema.type is Type.LIST and isinstance(value, list) and schema.items:
        if schema.list_type != "atomic":
            yield from _repeated(value, schema, place)
        for index, inner in enumerate(value):
            yield from _duplicates(inner, schema.items, f"{place}[{index}]")
    elif isinstance(value, dict):
        for key, inner in value.items():
            known = schema.fields.get(key) or schema.items
            if known is not None:
                yield from _duplicates(inner, known, f"{place}.{key}".lstrip("."))


def _repeated(values: list[Any], schema: Schema, place: str) -> Iterator[FieldError]:
    seen = set()
    for index, value in enumerate(values):
        if schema.list_type == "map":
            if not isinstance(value, dict):
                continue
            value = {key: value[key] for key in schema.list_keys if key in value}
        identity = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if identity in seen:
            yield status.duplicate(f"{place}[{index}]", value)
        seen.add(identity)
