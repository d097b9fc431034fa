"""Rules for one node of a CRD's schema, and for all inside it: what makes it structural."""

from collections.abc import Iterator

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.schema.crd_cel import complaint
from localkube.apiserver.schema.patterns import BadPattern, translated
from localkube.apiserver.status import FieldError

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("$ref", "definitions", "dependencies", "patternProperties", "id")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_COMBINED = ("allOf", "anyOf", "oneOf")
_KEY_NEEDED = (
    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
    "property"
)
_EMBEDDED = (
    "must not be empty if x-kubernetes-embedded-resource is true without "
    "x-kubernetes-preserve-unknown-fields"
)


def structural_errors(node: Obj, place: str) -> Iterator[FieldError]:
    yield from _keyword_errors(node, place)
    yield from _type_errors(node, place)
    yield from _extension_errors(node, place)
    yield from _list_errors(node, place)
    plain = {where for _, where, _ in children(node, place)}
    for inner, where in inner_schemas(node, place):
        if where not in plain:
            yield from _combined_errors(inner, where, node)
    for inner, where, missing in children(node, place):
        if not _is_typed(inner):
            yield status.required(f"{where}.type", f"must not be empty for specified {missing}")
        yield from structural_errors(inner, where)


def children(node: Obj, place: str) -> Iterator[tuple[Obj, str, str]]:
    for name, field in sorted((node.get("properties") or {}).items()):
        yield field, f"{place}.properties[{name}]", "object fields"
    if isinstance(node.get("items"), dict):
        yield node["items"], f"{place}.items", "array items"
    if isinstance(node.get("additionalProperties"), dict):
        where = f"{place}.additionalProperties"
        yield node["additionalProperties"], where, "object fields via additionalProperties"


def inner_schemas(node: Obj, place: str) -> Iterator[tuple[Obj, str]]:
    """Every schema right inside this one."""
    for inner, where, _ in children(node, place):
        yield inner, where
    for key in _COMBINED:
        combined = node.get(key)
        for index, inner in enumerate(combined if isinstance(combined, list) else ()):
            yield inner, f"{place}.{key}[{index}]"
    if isinstance(node.get("not"), dict):
        yield node["not"], f"{place}.not"


def _is_typed(node: Obj) -> bool:
    return bool(
        node.get("type")
        or node.get("x-kubernetes-int-or-string")
        or node.get("x-kubernetes-preserve-unknown-fields")
    )


def _keyword_errors(node: Obj, place: str) -> Iterator[FieldError]:
    for key in _UNSUPPORTED:
        if node.get(key):
            yield status.forbidden_field(f"{place}.{key}", f"{key} is not supported")
    if node.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield status.forbidden_field(f"{place}.uniqueItems", text)
    if node.get("properties") and node.get("additionalProperties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield status.forbidden_field(f"{place}.additionalProperties", text)
    yield from _rule_errors(node, place)
    pattern = node.get("pattern")
    if pattern and (why := _bad_pattern(pattern)):
        text = f"must be a valid regular expression, but isn't: error parsing regexp: {why}"
        yield status.invalid_value(f"{place}.pattern", pattern, text)


def _rule_errors(node: Obj, place: str) -> Iterator[FieldError]:
    rules = node.get("x-kubernetes-validations")
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        why = complaint(str(rule.get("rule", "")))
        if why.startswith("syntax: "):
            where = f"{place}.x-kubernetes-validations[{number}].rule"
            text = f"compilation failed: {why.removeprefix('syntax: ')}"
            yield status.invalid_value(where, rule, text)


def _bad_pattern(pattern: str) -> str:
    try:
        translated(pattern)
    except BadPattern as error:
        return str(error)
    return ""


def _type_errors(node: Obj, place: str) -> Iterator[FieldError]:
    kind = node.get("type")
    if kind and kind not in _TYPES:
        yield status.not_supported(f"{place}.type", kind, _TYPES)
    if kind == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield status.forbidden_field(f"{place}.type", text)
    if kind == "array" and isinstance(node.get("items"), list):
        text = "items must be a schema object and not an array"
        yield status.forbidden_field(f"{place}.items", text)
    elif kind == "array" and not isinstance(node.get("items"), dict):
        yield status.required(f"{place}.items", "must be specified")


def _extension_errors(node: Obj, place: str) -> Iterator[FieldError]:
    if node.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{place}.x-kubernetes-preserve-unknown-fields"
        yield status.invalid_value(where, False, "must be true or undefined")
    kind = node.get("type", "")
    if node.get("x-kubernetes-embedded-resource") is True:
        if not node.get("properties") and not node.get("x-kubernetes-preserve-unknown-fields"):
            yield status.required(f"{place}.properties", _EMBEDDED)
        if kind != "object":
            text = "must be object if x-kubernetes-embedded-resource is true"
            yield status.invalid_value(f"{place}.type", kind, text)
    map_type = node.get("x-kubernetes-map-type")
    if map_type is not None:
        if map_type not in _MAP_TYPES:
            yield status.not_supported(f"{place}.x-kubernetes-map-type", map_type, _MAP_TYPES)
        if kind != "object":
            text = "must be object if x-kubernetes-map-type is specified"
            yield status.invalid_value(f"{place}.type", kind, text)


def _list_errors(node: Obj, place: str) -> Iterator[FieldError]:
    list_type, keys = node.get("x-kubernetes-list-type"), node.get("x-kubernetes-list-map-keys")
    keys_place = f"{place}.x-kubernetes-list-map-keys"
    if list_type is not None:
        if list_type not in _LIST_TYPES:
            yield status.not_supported(f"{place}.x-kubernetes-list-type", list_type, _LIST_TYPES)
        if node.get("type") != "array":
            text = "must be array if x-kubernetes-list-type is specified"
            yield status.invalid_value(f"{place}.type", node.get("type", ""), text)
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield status.required(f"{place}.x-kubernetes-list-type", text)
    items = node.get("items")
    if list_type == "map":
        if not keys:
            text = "must not be empty if x-kubernetes-list-type is map"
            yield status.required(keys_place, text)
        if not isinstance(items, dict):
            text = "must have a schema if x-kubernetes-list-type is map"
            yield status.required(f"{place}.items", text)
        else:
            yield from _key_errors(items, keys or [], place)
    elif list_type == "set" and isinstance(items, dict):
        yield from _set_errors(items, f"{place}.items")


def _key_errors(items: Obj, keys: list[str], place: str) -> Iterator[FieldError]:
    properties = items.get("properties") or {}
    if any(key not in properties for key in keys):
        text = "entries must all be names of item properties"
        yield status.invalid_value(f"{place}.x-kubernetes-list-map-keys", keys, text)
    for key in keys:
        if key in (items.get("required") or ()) or key not in properties:
            continue
        if properties[key].get("default") is None:
            yield status.required(f"{place}.items.properties[{key}].default", _KEY_NEEDED)


def _set_errors(items: Obj, place: str) -> Iterator[FieldError]:
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        found = items.get("x-kubernetes-map-type")
        yield status.invalid_value(f"{place}.x-kubernetes-map-type", found, text)
    if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        found = items["x-kubernetes-list-type"]
        yield status.invalid_value(f"{place}.x-kubernetes-list-type", found, text)


def _combined_errors(node: Obj, place: str, around: Obj) -> Iterator[FieldError]:
    """Inside allOf, anyOf, oneOf and not a schema may only limit values, not type them."""
    int_or_string = around.get("x-kubernetes-int-or-string") is True
    for key in ("type", "description", "title"):
        if node.get(key) and not (key == "type" and int_or_string):
            yield status.forbidden_field(f"{place}.{key}", "must be empty to be structural")
    if "default" in node:
        yield status.forbidden_field(f"{place}.default", "must be undefined to be structural")
    for name, field in sorted((node.get("properties") or {}).items()):
        yield from _combined_errors(field, f"{place}.properties[{name}]", {})
    if isinstance(node.get("items"), dict):
        yield from _combined_errors(node["items"], f"{place}.items", {})
