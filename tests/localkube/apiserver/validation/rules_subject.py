"""What our rules say of an object, the way the verbs ask them. Causes are reason, field, text."""

import copy
from collections.abc import Callable

from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.server_fields import (
    set_fields_on_create,
    set_fields_on_status_update,
    set_fields_on_update,
)
from localkube.apiserver.kinds import Kind, builtin_kinds
from localkube.apiserver.validation.errors import Errors
from localkube.apiserver.validation.validate import (
    validate_create,
    validate_status_update,
    validate_update,
)
from tests.localkube.apiserver.validation.single_changes import Obj

Causes = list[tuple[str, str, str]]
Rule = Callable[[Obj], Causes]

UID = "00000000-0000-4000-8000-000000000000"
KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}


def kind_of(obj: Obj) -> Kind:
    return KINDS[obj["apiVersion"], obj["kind"]]


def created(obj: Obj) -> Causes:
    kind, obj = kind_of(obj), copy.deepcopy(obj)
    metadata = obj["metadata"]
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    if "generateName" in metadata:
        metadata.setdefault("name", f"{metadata['generateName']}bcdfg")
    metadata |= {"uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z"}
    if kind.has_status and kind.kind != "Node":
        obj.pop("status", None)
    apply_defaults(obj, kind)
    set_fields_on_create(obj, kind)
    return _causes(validate_create(obj, kind))


def updated(new: Obj, old: Obj) -> Causes:
    kind = kind_of(old)
    new, old = copy.deepcopy(new), copy.deepcopy(old)
    apply_defaults(old, kind)
    apply_defaults(new, kind)
    if kind.has_status and "status" in old:
        new["status"] = old["status"]
    set_fields_on_update(new, old, kind)
    return _causes(validate_update(new, old, kind))


def status_updated(new: Obj, old: Obj) -> Causes:
    kind = kind_of(old)
    new, old = copy.deepcopy(new), copy.deepcopy(old)
    apply_defaults(old, kind)
    apply_defaults(new, kind)
    set_fields_on_status_update(new, old, kind, "2026-01-01T00:00:00Z")
    return _causes(validate_status_update(new, old, kind))


def _causes(errors: Errors) -> Causes:
    return [(error.reason, error.field, error.message) for error in errors]
