"""What a patch made of an object, checked; a misfit is refused in the words of that patch."""

from typing import Any

import orjson

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.decode.json_text import parse
from localkube.apiserver.patch import go_text
from localkube.apiserver.patch.restore import misfit
from localkube.apiserver.schema.check import examine
from localkube.apiserver.schema.fast import is_clean
from localkube.apiserver.verbs.create import Write

# The order in which Go writes metadata that a patch has not touched.
_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def conform_patched(write: Write, new: Obj, old: Obj, *, strategic: bool) -> Obj:
    """Types and unknown fields of `new`, which is changed in place."""
    kind, schema = write.target.kind, write.api.schema(write.target.kind)
    new |= {"apiVersion": old["apiVersion"], "kind": old["kind"]}
    new.setdefault("metadata", {})
    if not is_clean(new, schema):
        _judge(write, new, old, strategic=strategic)
    if kind.custom:
        write.api.custom.version(kind).apply_defaults(new)
    return new


def _judge(write: Write, new: Obj, old: Obj, *, strategic: bool) -> None:
    kind, schema = write.target.kind, write.api.schema(write.target.kind)
    shown = go_text.plain(parse(write.request.body)) if strategic else _text(new, old)
    wrong_type = misfit(new, schema) if strategic else ""
    refusal, warnings = examine(new, kind, schema, write.options.validation)
    if wrong_type or refusal:
        problem = status.invalid_value("patch", shown, wrong_type or refusal)
        refused = status.invalid("", "", "", [problem])
        del refused.status["details"]["kind"]
        raise refused
    write.request.warnings += warnings


def _text(new: Obj, old: Obj) -> str:
    """Go writes what a patch went through in order of keys, and the rest as it is declared."""
    shown = {key: new[key] for key in sorted(new)}
    for key, value in shown.items():
        if isinstance(value, dict):
            shown[key] = _in_order(value, old.get(key), key)
    return orjson.dumps(shown).decode()


def _in_order(value: Obj, before: Any, key: str) -> Obj:
    if value != before:
        return {name: value[name] for name in sorted(value)}
    if key == "metadata":
        return {name: value[name] for name in _METADATA_ORDER if name in value}
    return value
