"""Failures as Kubernetes says them: an ApiError carries the v1 Status that the client gets."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import Answer

_MOST_ERRORS = 200  # that one refusal names


class ApiError(Exception):
    """A refusal. `status` is a complete v1 Status."""

    def __init__(self, status: Obj, *, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers

    @property
    def code(self) -> int:
        code: int = self.status["code"]
        return code

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))

    def answer(self) -> Answer:
        return Answer(self.code, orjson.dumps(self.status) + b"\n", headers=self.headers)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field, in the words of k8s.io/apimachinery field errors."""

    field: str  # "spec.containers[0].image"
    reason: str  # FieldValueRequired, FieldValueInvalid, ...
    message: str  # "Required value: ..." (without the field)


def _shown(value: Any) -> str:
    """A bad value in an error text, as Go prints it."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a number of more than 64 bits
        return json.dumps(value, sort_keys=True)


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", _joined("Required value", detail))


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    choices = ", ".join(f'"{s}"' for s in supported)
    return FieldError(
        field,
        "FieldValueNotSupported",
        f"Unsupported value: {_shown(value)}: supported values: {choices}",
    )


def forbidden_field(field: str, detail: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", _joined("Forbidden", detail))


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(field: str, found: int, limit: int) -> FieldError:
    return FieldError(
        field, "FieldValueTooMany", f"Too many: {found}: must have at most {limit} items"
    )


def _joined(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


def failure(
    code: int,
    reason: str,
    message: str,
    *,
    details: Obj | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> ApiError:
    status: Obj = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return ApiError(status, headers=headers)


def _details(kind: Kind, name: str) -> Obj:
    details: Obj = {}
    if name:
        details["name"] = name
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return details


def bad_request(message: str) -> ApiError:
    return failure(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind, name: str, why: str) -> ApiError:
    message = f'{kind.qualified} "{name}" is forbidden: {why}'
    return failure(403, "Forbidden", message, details=_details(kind, name))


def not_found(kind: Kind, name: str) -> ApiError:
    message = f'{kind.qualified} "{name}" not found'
    return failure(404, "NotFound", message, details=_details(kind, name))


def no_such_resource() -> ApiError:
    message = "the server could not find the requested resource"
    return failure(404, "NotFound", message, details={})


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, details={})


def already_exists(kind: Kind, name: str) -> ApiError:
    message = f'{kind.qualified} "{name}" already exists'
    return failure(409, "AlreadyExists", message, details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return failure(409, "Conflict", message, details=_details(kind, name))


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def gone(message: str) -> ApiError:
    return failure(410, "Expired", message)


def too_large(limit_bytes: int) -> ApiError:
    message = f"Request entity too large: limit is {limit_bytes}"
    return failure(413, "RequestEntityTooLarge", message)


def too_many_values(limit: int) -> ApiError:
    message = (
        f"Request entity too large: limit is {limit} values (objects, lists, texts, numbers) in "
        "one body; send it in several parts"
    )
    return failure(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    listed = ", ".join(accepted)
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {listed}"
    )
    return failure(415, "UnsupportedMediaType", message)


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    listed = ", ".join(accepted)
    message = f"only the following media types are accepted: {listed}"
    return failure(406, "NotAcceptable", message)


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422: everything that is wrong with an object, as one Status."""
    left = len(errors) - _MOST_ERRORS
    if left > 0:  # or the answer would be a hundred times as large as what was sent
        errors = [*errors[:_MOST_ERRORS], FieldError("", "", f"and {left} more")]
    # Said once in the text, though listed as often as found: that is how Kubernetes adds them up.
    texts = list(dict.fromkeys(f"{e.field}: {e.message}".removeprefix(": ") for e in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: Obj = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [
        {"reason": e.reason, "message": e.message, "field": e.field} for e in errors
    ]
    message = f'{qualified} "{name}" is invalid: {listed}'
    return failure(422, "Invalid", message, details=details)


def too_many_requests(message: str, retry_after_s: int = 1) -> ApiError:
    return failure(
        429,
        "TooManyRequests",
        message,
        details={"retryAfterSeconds": retry_after_s},
        headers=(("Retry-After", str(retry_after_s)),),
    )


def internal(message: str) -> ApiError:
    return failure(500, "InternalError", f"Internal error occurred: {message}")


_CREATED = orjson.dumps(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


def created() -> Answer:
    """The answer of a binding or an eviction, which have no object to show."""
    return Answer(201, _CREATED)
