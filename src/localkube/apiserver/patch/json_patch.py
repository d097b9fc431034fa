"""JSON patch (RFC 6902), as lenient as Kubernetes: `replace` may add a member, no value is null."""

from typing import Any

import jsonpatch
import jsonpointer
import orjson

from kubeclient.objects import Obj
from localkube.apiserver.patch import body
from localkube.apiserver.patch.body import refuse_too_deep
from localkube.apiserver.status import ApiError, failure

MAX_OPERATIONS = 10_000
# Copies of copies grow without bound; the limit is that of a request's body.
_MAX_COPIED_BYTES = 3 * 1024 * 1024
_NEED_VALUE = frozenset({"add", "replace", "test"})
_REFUSALS = (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException)


def rejected() -> ApiError:
    """All that Kubernetes says of a JSON patch that cannot be applied."""
    message = "the server rejected our request due to an error in our request"
    return failure(422, "Invalid", message, details={})


@refuse_too_deep
def apply_json_patch(obj: Obj, patch: bytes | list[Any]) -> Obj:
    """A new object; the old one and the patch stay as they are."""
    operations = body.as_operations(patch)
    if len(operations) > MAX_OPERATIONS:
        raise failure(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is"
            f" {MAX_OPERATIONS}, got {len(operations)}",
        )
    result: Any = orjson.loads(orjson.dumps(obj))
    copied_bytes = 0
    for operation in operations:
        if operation.get("op") == "copy":
            copied_bytes += _size(result, operation.get("from", ""))
            if copied_bytes > _MAX_COPIED_BYTES:
                raise rejected()
        result = _applied(result, operation)
    if not isinstance(result, dict):
        raise rejected()
    return result


def _size(document: Any, pointer: str) -> int:
    try:
        value = jsonpointer.resolve_pointer(document, pointer)
    except jsonpointer.JsonPointerException:
        raise rejected() from None
    if isinstance(value, jsonpointer.EndOfList):
        raise rejected()
    return len(orjson.dumps(value))


def _applied(document: Any, operation: Obj) -> Any:
    if operation.get("op") in _NEED_VALUE and "value" not in operation:
        operation = {**operation, "value": None}
    try:
        return _run(document, operation)
    except jsonpatch.JsonPatchPathNotFound:
        if operation["op"] != "replace":
            raise rejected() from None
    except _REFUSALS:
        raise rejected() from None
    return _added(document, operation)


def _run(document: Any, operation: Obj) -> Any:
    return jsonpatch.JsonPatch([operation]).apply(document, in_place=True)


def _added(document: Any, operation: Obj) -> Any:
    """A `replace` of what is not there: fine in an object, not in a list."""
    parent, _ = jsonpointer.JsonPointer(operation["path"]).to_last(document)
    if not isinstance(parent, dict):
        raise rejected()
    return _run(document, {**operation, "op": "add"})
