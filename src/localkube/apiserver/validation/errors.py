"""Field errors in the words of Kubernetes, with bad values as JSON.

kube-apiserver prints an object as its internal Go type, with Go's names of the fields; here it is
printed with the names that the user wrote. Validators append to a list and build a path only when
there is something to say.
"""

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from kubeclient.objects import Obj
from localkube.apiserver.patch.go_text import quoted
from localkube.apiserver.status import FieldError, forbidden_field, required, too_long

__all__ = ["Errors", "FieldError", "forbidden_field", "required", "too_long"]

Errors: TypeAlias = list[FieldError]

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"

_HEADS = ("---", "+++")
# Comparing takes time with the square of the lines; nobody reads more anyway.
_MOST_LINES = 10_000


def shown(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    return go_json(value)


def go_json(value: Any) -> str:
    """As encoding/json writes it: maps sorted, <, > and & escaped."""
    return escaped(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def escaped(text: str) -> str:
    """Go escapes what could end a script element or a JavaScript line."""
    for character in "&<>\u2028\u2029":
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def difference(old: Obj, new: Obj) -> str:
    """A unified diff of both as indented JSON."""
    before, after = (
        [f"{line}\n" for line in json.dumps(each, indent=1, sort_keys=True).split("\n")]
        for each in (old, new)
    )
    if len(before) + len(after) > _MOST_LINES:
        return ""
    return "".join(line for line in difflib.unified_diff(before, after) if line[:3] not in _HEADS)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    text = f"Invalid value: {shown(value)}"
    return FieldError(path, "FieldValueInvalid", f"{text}: {detail}" if detail else text)


def invalid_unshown(path: str, detail: str) -> FieldError:
    """Where the value itself would say nothing."""
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {detail}")


def invalid_each(errors: Errors, path: str, value: Any, details: Iterable[str]) -> None:
    for detail in details:
        errors.append(invalid(path, value, detail))


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    choices = ", ".join(map(quoted, supported))
    # Enumerations are types of their own in Go, and print as JSON does.
    text = f"Unsupported value: {go_json(value)}: supported values: {choices}"
    return FieldError(path, "FieldValueNotSupported", text)


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    text = f"Duplicate value: {shown(value)}"
    return FieldError(path, "FieldValueDuplicate", f"{text}: {detail}" if detail else text)


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    text = f"Not found: {shown(value)}"
    return FieldError(path, "FieldValueNotFound", f"{text}: {detail}" if detail else text)


def too_many(path: str, found: int, limit: int) -> FieldError:
    items = "item" if limit == 1 else "items"
    text = f"Too many: {found}: must have at most {limit} {items}"
    return FieldError(path, "FieldValueTooMany", text)


def not_negative(errors: Errors, value: int, path: str) -> None:
    if value < 0:
        errors.append(invalid(path, value, NEGATIVE))


def positive(errors: Errors, value: int, path: str) -> None:
    if value <= 0:
        errors.append(invalid(path, value, NOT_POSITIVE))


def unchanged(errors: Errors, new: Any, old: Any, path: str) -> None:
    if new != old:
        errors.append(invalid(path, new, IMMUTABLE))


def in_range(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"
