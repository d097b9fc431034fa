"""Conditions in statuses (metav1.Condition)."""

import re
from collections.abc import Sequence

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_long,
)
from localkube.apiserver.validation.formats import label_key, size

_STATUSES = ("False", "True", "Unknown")
_REASON_MAX = 1024
_MESSAGE_MAX = 32 * 1024
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of"
    " alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g."
    " 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex"
    f" used for validation is '{_REASON}')"
)


def conditions(errors: Errors, listed: Sequence[Obj], path: str) -> None:
    seen: set[str] = set()
    for place, condition in enumerate(listed):
        if condition["type"] in seen:
            errors.append(duplicate(f"{path}[{place}].type", condition["type"]))
        seen.add(condition["type"])
        _condition(errors, condition, f"{path}[{place}]")


def _condition(errors: Errors, condition: Obj, path: str) -> None:
    kind, status, reason = condition["type"], condition["status"], condition["reason"]
    invalid_each(errors, f"{path}.type", kind, label_key(kind))
    if status not in _STATUSES:
        errors.append(not_supported(f"{path}.status", status, _STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        what = "must be greater than or equal to zero"
        errors.append(invalid(f"{path}.observedGeneration", generation, what))
    if not condition.get("lastTransitionTime"):
        errors.append(required(f"{path}.lastTransitionTime"))
    if not reason:
        errors.append(required(f"{path}.reason"))
    else:
        if not _is_reason(reason):
            errors.append(invalid(f"{path}.reason", reason, _REASON_TEXT))
        if size(reason) > _REASON_MAX:
            errors.append(too_long(f"{path}.reason", _REASON_MAX))
    if size(condition.get("message", "")) > _MESSAGE_MAX:
        errors.append(too_long(f"{path}.message", _MESSAGE_MAX))
