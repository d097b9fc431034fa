"""Selectors in access reviews: what is wrong with them, and what is left of those that are odd.

Newer clients may use operators that are unknown here. Kubernetes leaves such requirements out: that
asks for more than the client did. The answer says so.
"""

from collections.abc import Callable

from kubeclient.objects import Obj
from kubeclient.selectors import (
    FieldRequirement,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from localkube.apiserver.status import FieldError, forbidden_field, invalid_value, required
from localkube.apiserver.validation.selectors import NEEDS_VALUES, NO_VALUES, label_requirement

_AT = "spec.resourceAttributes"
_LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


def selector_errors(attributes: Obj) -> list[FieldError]:
    """Of the review's resourceAttributes."""
    return [
        *_errors(attributes.get("fieldSelector"), f"{_AT}.fieldSelector", _field_errors),
        *_errors(attributes.get("labelSelector"), f"{_AT}.labelSelector", _label_errors),
    ]


def _errors(
    selector: Obj | None, path: str, check: Callable[[Obj, str], list[FieldError]]
) -> list[FieldError]:
    if selector is None:
        return []
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or ()
    errors = []
    if raw and requirements:
        why = "may not specified at the same time as requirements"
        errors.append(invalid_value(f"{path}.rawSelector", raw, why))
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(required(f"{path}.requirements", why))
    for index, each in enumerate(requirements):
        errors += check(each, f"{path}.requirements[{index}]")
    return errors


def _field_errors(requirement: Obj, path: str) -> list[FieldError]:
    errors = [] if requirement.get("key") else [required(f"{path}.key", "must be specified")]
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        errors.append(required(f"{path}.values", NEEDS_VALUES))
    if operator in ("Exists", "DoesNotExist") and values:
        errors.append(forbidden_field(f"{path}.values", NO_VALUES))
    return errors


def _label_errors(requirement: Obj, path: str) -> list[FieldError]:
    whole = {"key": "", "operator": ""} | requirement
    known = whole["operator"] in _LABEL_OPERATORS
    errors: list[FieldError] = []
    label_requirement(errors, whole, path)
    return errors if known else [each for each in errors if each.field != f"{path}.operator"]


def field_selector(attributes: Obj) -> str:
    """As a request would have it, without what cannot be understood."""
    selector = attributes.get("fieldSelector") or {}
    if raw := selector.get("rawSelector", ""):
        return str(raw) if _parses(parse_field_selector, raw) else ""
    terms = [
        FieldRequirement(each.get("key", ""), each["operator"] == "In", each["values"][0]).text
        for each in selector.get("requirements") or ()
        if _is_field(each)
    ]
    return ",".join(terms)


def ignored(attributes: Obj) -> list[str]:
    """Which selectors were left out, in Kubernetes' words."""
    fields, labels = attributes.get("fieldSelector") or {}, attributes.get("labelSelector") or {}
    return [
        *_ignored(fields, f"{_AT}.fieldSelector", parse_field_selector, _is_field),
        *_ignored(labels, f"{_AT}.labelSelector", parse_label_selector, _is_label),
    ]


def _ignored(
    selector: Obj, path: str, parse: Callable[[str], object], is_known: Callable[[Obj], bool]
) -> list[str]:
    raw = selector.get("rawSelector", "")
    known = [is_known(each) for each in selector.get("requirements") or ()]
    if all(known) and (not raw or _parses(parse, raw)):
        return []
    return [f"{path} {'partially ' if any(known) else ''}ignored due to parse error"]


def _parses(parse: Callable[[str], object], raw: str) -> bool:
    try:
        parse(raw)
    except SelectorError:
        return False
    return True


def _is_field(requirement: Obj) -> bool:
    """Fields are equal to one value, or not."""
    one = len(requirement.get("values") or ()) == 1
    return one and requirement.get("operator") in ("In", "NotIn")


def _is_label(requirement: Obj) -> bool:
    return requirement.get("operator") in _LABEL_OPERATORS
