"""Pieces that the kinds of dynamic resource allocation share: names, settings, taints, lists.

Expressions (CEL) are only parsed, not type-checked; the library for it is loaded when the first is
met.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.cel_library import cel
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_long,
    too_many,
)
from localkube.apiserver.validation.formats import (
    c_identifier,
    dns_label,
    dns_subdomain,
    label_key,
    label_value,
    size,
)
from localkube.apiserver.validation.volume_sources import csi_driver_name

Item = TypeVar("Item")

RAW_MAX = 10 * 1024
_POOL_NAME_MAX = 253
_ID_MAX = 32
_EXPRESSION_MAX = 10 * 1024
_SELECTORS_MAX = 32
_BINDING_CONDITIONS_MAX = 4
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")
_BINDING = ("bindingConditions", "bindingFailureConditions")


def each(
    errors: Errors,
    items: Sequence[Item],
    most: int,
    check: Callable[[Errors, Item, str], None],
    path: str,
) -> bool:
    """False if there are too many to look at them."""
    if len(items) > most:
        errors.append(too_many(path, len(items), most))
        return False
    for place, item in enumerate(items):
        check(errors, item, f"{path}[{place}]")
    return True


def distinct(errors: Errors, keys: Iterable[Any], path: str) -> None:
    seen = set()
    for place, key in enumerate(keys):
        if key in seen:
            errors.append(duplicate(f"{path}[{place}]", key))
        seen.add(key)


driver_name = csi_driver_name


def device_name(errors: Errors, name: str, path: str) -> None:
    invalid_each(errors, path, name, dns_label(name))


def pool_name(errors: Errors, name: str, path: str) -> None:
    if not name:
        errors.append(required(path))
        return
    if size(name) > _POOL_NAME_MAX:
        errors.append(too_long(path, _POOL_NAME_MAX))
    for part in name.split("/"):
        invalid_each(errors, path, part, dns_subdomain(part))


def attribute_name(errors: Errors, name: str, path: str) -> None:
    """`domain/identifier`, or only the identifier. Of more slashes Kubernetes says nothing."""
    parts = name.split("/")
    if len(parts) == 1:
        _identifier(errors, name, path)
    elif len(parts) == 2:
        if not parts[0]:
            errors.append(invalid(path, "", "the domain must not be empty"))
        else:
            driver_name(errors, parts[0], path)
        if not parts[1]:
            errors.append(invalid(path, "", "the name must not be empty"))
        else:
            _identifier(errors, parts[1], path)


def full_attribute_name(errors: Errors, name: str, path: str) -> None:
    attribute_name(errors, name, path)
    if "/" not in name:
        what = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, name, what))


def _identifier(errors: Errors, name: str, path: str) -> None:
    if size(name) > _ID_MAX:
        errors.append(too_long(path, _ID_MAX))
    invalid_each(errors, path, name, c_identifier(name))


def selectors(errors: Errors, listed: Sequence[Obj], path: str) -> None:
    each(errors, listed, _SELECTORS_MAX, _selector, path)


def _selector(errors: Errors, selector: Obj, path: str) -> None:
    if "cel" not in selector:
        errors.append(required(f"{path}.cel"))
        return
    expression = selector["cel"].get("expression", "")
    path = f"{path}.cel.expression"
    if size(expression) > _EXPRESSION_MAX:
        errors.append(too_long(path, _EXPRESSION_MAX))
    elif complaint := _parse_complaint(expression):
        errors.append(invalid(path, expression, f"compilation failed: {complaint}"))


@lru_cache(maxsize=256)
def _parse_complaint(expression: str) -> str:
    try:
        cel().compile(expression)
    except ValueError as error:
        # As Kubernetes' own parser says it, which indents the line with the error.
        return (
            str(error)
            .removeprefix(f"Failed to parse expression '{expression}': ")
            .replace("\n|", "\n |")
        )
    return ""


def configuration(errors: Errors, config: Obj, path: str) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        errors.append(required(f"{path}.opaque"))
        return
    driver_name(errors, opaque.get("driver", ""), f"{path}.opaque.driver")
    raw_object(errors, opaque.get("parameters"), f"{path}.opaque.parameters")


def raw_object(errors: Errors, value: Any, path: str) -> None:
    if value is None:
        errors.append(required(path))
    elif len(orjson.dumps(value)) > RAW_MAX:
        errors.append(too_long(path, RAW_MAX))
    elif not isinstance(value, dict):
        errors.append(invalid(path, "<value omitted>", "must be a valid JSON object"))


def toleration(errors: Errors, value: Obj, path: str) -> None:
    key, text = value.get("key", ""), value.get("value", "")
    if key:
        invalid_each(errors, f"{path}.key", key, label_key(key))
    operator = value.get("operator", "")
    if operator == "Exists":
        if text:
            what = "must be empty for operator `Exists`"
            errors.append(invalid(f"{path}.value", text, what))
    elif operator == "Equal":
        invalid_each(errors, f"{path}.value", text, label_value(text))
    elif not operator:
        errors.append(required(f"{path}.operator"))
    else:
        errors.append(not_supported(f"{path}.operator", operator, _OPERATORS))
    effect = value.get("effect", "")
    if effect and effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))


def taint(errors: Errors, value: Obj, path: str) -> None:
    key, text, effect = (value.get(name, "") for name in ("key", "value", "effect"))
    invalid_each(errors, f"{path}.key", key, label_key(key))
    if text:
        invalid_each(errors, f"{path}.value", text, label_value(text))
    if not effect:
        errors.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))


def binding_conditions(errors: Errors, holder: Obj, path: str) -> None:
    """What must become true, and what must not, before a device is used: one needs the other."""
    before, against = (holder.get(name, []) for name in _BINDING)
    for name in _BINDING:
        listed = holder.get(name, [])
        each(errors, listed, _BINDING_CONDITIONS_MAX, _condition_type, f"{path}.{name}")
    distinct(errors, before, f"{path}.bindingConditions")
    distinct(errors, against, f"{path}.bindingFailureConditions")
    for place, condition in enumerate(against):
        if condition in before:
            what = "bindingFailureConditions must not overlap with bindingConditions"
            at = f"{path}.bindingFailureConditions[{place}]"
            errors.append(invalid(at, condition, what))
    if bool(before) != bool(against):
        lacking, given = _BINDING if against else reversed(_BINDING)
        what = f"{lacking} are required to use {given}"
        errors.append(invalid(f"{path}.{lacking}", None, what))


def _condition_type(errors: Errors, name: str, path: str) -> None:
    invalid_each(errors, path, name, label_key(name))
