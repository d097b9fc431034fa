"""The last-applied-configuration annotation of `kubectl apply`, when server-side apply follows it.

Only for the manager "kubectl": what client-side apply set and nobody changed since is no conflict,
and the annotation is kept up to date, so that one can go back.
"""

from typing import Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch import apply_check
from localkube.apiserver.patch.field_compare import compared
from localkube.apiserver.patch.field_set import FieldSet, difference
from localkube.apiserver.patch.field_walk import declared
from localkube.apiserver.patch.shape import Shape

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS_BYTES = 256 * 1024


def _annotation(obj: Obj) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(ANNOTATION, ""))


def still_as_applied(shape: Shape, live: Obj, kind: Kind) -> FieldSet:
    """The fields that the last client-side apply set and that have their values still."""
    applied = _parsed(_annotation(live))
    if applied is None or applied.get("apiVersion") != kind.api_version:
        return {}
    if apply_check.problems(shape.schema, applied):
        return {}
    changed, gone = compared(shape, applied, live)
    return difference(difference(declared(shape, applied) or {}, changed or {}), gone or {})


def _parsed(text: str) -> Obj | None:
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def refresh(obj: Obj, config: Obj) -> None:
    """Sets the annotation of an object that has it. The object's metadata must be its own."""
    if not _annotation(obj):
        return
    metadata = config.get("metadata") or {}
    if "annotations" in metadata:
        others = {k: v for k, v in (metadata["annotations"] or {}).items() if k != ANNOTATION}
        config = {**config, "metadata": {**metadata, "annotations": others}}
    annotations = {**obj["metadata"]["annotations"], ANNOTATION: _text(config)}
    size = sum(len(k.encode()) + len(str(v).encode()) for k, v in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        del annotations[ANNOTATION]
    obj["metadata"]["annotations"] = annotations


def _text(config: Obj) -> str:
    """As Go writes it, with HTML in mind."""
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
