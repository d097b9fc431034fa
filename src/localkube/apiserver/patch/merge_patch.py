"""JSON merge patch (RFC 7386): null removes, objects merge, all else replaces."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.patch import body
from localkube.apiserver.patch.body import refuse_too_deep
from localkube.apiserver.status import bad_request


@refuse_too_deep
def apply_merge_patch(obj: Obj, patch: bytes | Obj) -> Obj:
    """A new object that shares with the arguments what did not change; its metadata is its own."""
    changes = body.as_map(patch, "error decoding patch: ")
    if changes is None:
        raise bad_request("Invalid JSON Patch")
    result = merge(obj, changes)
    if isinstance(result.get("metadata"), dict):
        result["metadata"] = dict(result["metadata"])
    return result


def merge(target: Any, patch: Obj) -> Obj:
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value) if isinstance(value, dict) else value
    return result
