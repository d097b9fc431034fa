"""Patch documents, decoded; what is no such document is refused in the words of Go's decoder."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from kubeclient.objects import Obj
from localkube.apiserver.decode.json_text import BadJson, parse
from localkube.apiserver.status import bad_request

_OPERATION = "handlers.jsonPatchOp"
_MAP = "map[string]interface {}"
_TEXT_FIELDS = ("op", "path", "from")


def json_value(body: bytes, prefix: str = "") -> Any:
    try:
        return parse(body)
    except BadJson as no:
        raise bad_request(f"{prefix}{no}") from None


def as_map(patch: bytes | Obj, prefix: str = "") -> Obj | None:
    """A merge patch or a strategic one. `null` is for the caller to judge."""
    value = json_value(patch, prefix) if isinstance(patch, bytes) else patch
    if value is None or isinstance(value, dict):
        return value
    raise bad_request(f"{prefix}{_mismatch(value)} value of type {_MAP}")


def as_operations(patch: bytes | list[Any]) -> list[Obj]:
    """A JSON patch."""
    prefix = "error decoding patch: "
    value = json_value(patch, prefix) if isinstance(patch, bytes) else patch
    if value is None:
        return []
    if not isinstance(value, list):
        raise bad_request(f"{prefix}{_mismatch(value)} value of type []{_OPERATION}")
    for operation in value:
        if operation is not None and not isinstance(operation, dict):
            raise bad_request(f"{prefix}{_mismatch(operation)} value of type {_OPERATION}")
        for field in _TEXT_FIELDS:
            text = (operation or {}).get(field)
            if text is not None and not isinstance(text, str):
                raise bad_request(
                    f"{prefix}{_mismatch(text)} struct field jsonPatchOp.{field} of type string"
                )
    return [operation or {} for operation in value]


def _mismatch(value: Any) -> str:
    for python, name in _JSON_NAMES:
        if isinstance(value, python):
            return f"json: cannot unmarshal {name} into Go"
    return "json: cannot unmarshal null into Go"


_JSON_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (dict, "object"),
    (list, "array"),
    (str, "string"),
    (int, "number"),
    (float, "number"),
)


P = ParamSpec("P")
R = TypeVar("R")


def refuse_too_deep(walk: Callable[P, R]) -> Callable[P, R]:
    """Input that is nested too deeply for a recursive walk is refused instead of a crash."""

    @wraps(walk)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return walk(*args, **kwargs)
        except RecursionError:
            raise bad_request("the body of the request is nested too deeply") from None

    return guarded
