"""Label selectors inside specs, and what they select."""

from collections.abc import Mapping, Sequence

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    required,
)
from localkube.apiserver.validation.formats import label_key, label_value
from localkube.apiserver.validation.metadata import LABELS_MAX, labels
from localkube.apiserver.validation.own_limits import Excess, excess

NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
NO_OPERATOR = "not a valid selector operator"


def label_selector(errors: Errors, selector: Obj | None, path: str) -> None:
    if not selector:
        return
    if "matchLabels" in selector:
        labels(errors, selector["matchLabels"], f"{path}.matchLabels")
    expressions = selector.get("matchExpressions", ())
    count = _named(expressions)
    if count > LABELS_MAX:
        errors.append(excess(f"{path}.matchExpressions", count, LABELS_MAX))
    for place, requirement in enumerate(expressions):
        label_requirement(errors, requirement, f"{path}.matchExpressions[{place}]")


def named(selector: Obj | None) -> int:
    """How many keys and values it names."""
    if not selector:
        return 0
    return len(selector.get("matchLabels", ())) + _named(selector.get("matchExpressions", ()))


def _named(expressions: Sequence[Obj]) -> int:
    return sum(1 + len(each.get("values", ())) for each in expressions)


def label_requirement(errors: Errors, requirement: Obj, path: str) -> None:
    operator, values = requirement["operator"], requirement.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", NEEDS_VALUES))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(forbidden_field(f"{path}.values", NO_VALUES))
    else:
        errors.append(invalid(f"{path}.operator", operator, NO_OPERATOR))
    invalid_each(errors, f"{path}.key", requirement["key"], label_key(requirement["key"]))
    for place, value in enumerate(values):
        invalid_each(errors, f"{path}.values[{place}]", value, label_value(value))


def is_usable(selector: Obj) -> bool:
    """Whether the selector can be evaluated at all, however much it names."""
    errors: Errors = []
    label_selector(errors, selector, "")
    return all(isinstance(error, Excess) for error in errors)


def is_empty(selector: Obj) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def selects(selector: Obj, found: Mapping[str, str]) -> bool:
    """Of a usable selector."""
    wanted = selector.get("matchLabels", {})
    return all(found.get(key) == value for key, value in wanted.items()) and all(
        _meets(requirement, found) for requirement in selector.get("matchExpressions", ())
    )


def _meets(requirement: Obj, found: Mapping[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values", ())
    match requirement["operator"]:
        case "In":
            return key in found and found[key] in values
        case "NotIn":
            return key not in found or found[key] not in values
        case "Exists":
            return key in found
        case _:
            return key not in found
