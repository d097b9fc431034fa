"""Metadata, of every kind.

Three layers, as in the API server: `object_meta` with the kind's own name format; `own_meta`, which
adds what only Kubernetes' own kinds ask (finalizers); and the generic check that every object
passes, where a name need only be usable in a URL.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    not_negative,
    required,
    too_long,
    unchanged,
)
from localkube.apiserver.validation.formats import (
    NameCheck,
    as_prefix,
    dns_label,
    label_key,
    label_value,
    path_segment,
    path_segment_prefix,
    size,
)
from localkube.apiserver.validation.own_limits import excess

# Of an object, and of what a selector names. Kubernetes has no limit; but each label is looked at
# with every change, by every controller.
LABELS_MAX = 1000
_ANNOTATIONS_MAX = 256 * 1024
_MANAGER_MAX = 128
_SUBRESOURCE_MAX = 256
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")


def generic_meta(errors: Errors, metadata: Obj, *, namespaced: bool) -> None:
    """What every stored object must fulfil, whatever its kind says."""
    object_meta(errors, metadata, path_segment, namespaced=namespaced)


def own_meta(
    errors: Errors, metadata: Obj, name_check: NameCheck, *, namespaced: bool = True
) -> None:
    object_meta(errors, metadata, name_check, namespaced=namespaced)
    kubernetes_finalizers(errors, metadata)


def own_meta_update(errors: Errors, new: Obj, old: Obj) -> None:
    object_meta_update(errors, new, old)
    kubernetes_finalizers(errors, new)


def object_meta(
    errors: Errors,
    metadata: Obj,
    name_check: NameCheck,
    *,
    namespaced: bool = True,
    path: str = "metadata",
) -> None:
    prefix = metadata.get("generateName")
    if prefix:
        check = path_segment_prefix if name_check is path_segment else name_check
        invalid_each(errors, f"{path}.generateName", prefix, check(as_prefix(prefix)))
    name = metadata.get("name")
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    else:
        for complaint in name_check(name):
            errors.append(invalid(f"{path}.name", name, complaint))
    _namespace(errors, metadata.get("namespace", ""), path, namespaced=namespaced)
    not_negative(errors, metadata.get("generation", 0), f"{path}.generation")
    _common(errors, metadata, path)
    if "finalizers" in metadata:
        _finalizers(errors, metadata["finalizers"], f"{path}.finalizers")
    if "managedFields" in metadata:
        _managed_fields(errors, metadata["managedFields"], f"{path}.managedFields")


def object_meta_update(errors: Errors, new: Obj, old: Obj) -> None:
    if new == old and new.get("resourceVersion"):
        return  # as most updates of a status leave it
    if "deletionTimestamp" in old:
        _no_new_finalizers(errors, new.get("finalizers", ()), old.get("finalizers", ()))
    if not new.get("resourceVersion"):
        path = "metadata.resourceVersion"
        errors.append(invalid(path, "", "must be specified for an update"))
    if new.get("generation", 0) < old.get("generation", 0):
        path = "metadata.generation"
        errors.append(invalid(path, new.get("generation", 0), "must not be decremented"))
    for name in _FIXED:
        if new.get(name) != old.get(name):
            empty = None if name.endswith("Timestamp") else ""
            unchanged(errors, new.get(name, empty), old.get(name, empty), f"metadata.{name}")
    grace = "deletionGracePeriodSeconds"
    unchanged(errors, new.get(grace), old.get(grace), f"metadata.{grace}")
    _common(errors, new, "metadata")
    if "managedFields" in new:
        _managed_fields(errors, new["managedFields"], "metadata.managedFields")


def kubernetes_finalizers(errors: Errors, metadata: Obj) -> None:
    for place, name in enumerate(metadata.get("finalizers", ())):
        kubernetes_finalizer(errors, name, f"metadata.finalizers[{place}]")


def kubernetes_finalizer(errors: Errors, name: str, path: str) -> None:
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        what = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(invalid(path, name, what))


def template_meta(errors: Errors, metadata: Obj, path: str) -> None:
    """Of objects to be made later: labels and annotations, nothing else."""
    annotations(errors, metadata.get("annotations", {}), f"{path}.annotations")
    labels(errors, metadata.get("labels", {}), f"{path}.labels")
    for name in metadata:
        if name not in ("annotations", "labels"):
            errors.append(forbidden_field(f"{path}.{name}", "cannot be set"))


def labels(errors: Errors, values: Mapping[str, str], path: str) -> None:
    if len(values) > LABELS_MAX:
        errors.append(excess(path, len(values), LABELS_MAX))
    for key, value in values.items():
        for complaint in label_key(key):
            errors.append(invalid(path, key, complaint))
        for complaint in label_value(value):
            errors.append(invalid(path, value, complaint))


def annotations(errors: Errors, values: Mapping[str, str], path: str) -> None:
    total = 0
    for key, value in values.items():
        total += size(key) + size(value)
        for complaint in label_key(key.lower()):
            errors.append(invalid(path, key, complaint))
    if total > _ANNOTATIONS_MAX:
        errors.append(too_long(path, _ANNOTATIONS_MAX))


def _common(errors: Errors, metadata: Obj, path: str) -> None:
    if "labels" in metadata:
        labels(errors, metadata["labels"], f"{path}.labels")
    if "annotations" in metadata:
        annotations(errors, metadata["annotations"], f"{path}.annotations")
    if "ownerReferences" in metadata:
        _owners(errors, metadata["ownerReferences"], f"{path}.ownerReferences")


def _namespace(errors: Errors, namespace: str, path: str, *, namespaced: bool) -> None:
    if not namespaced:
        if namespace:
            errors.append(forbidden_field(f"{path}.namespace", "not allowed on this type"))
    elif not namespace:
        errors.append(required(f"{path}.namespace"))
    else:
        invalid_each(errors, f"{path}.namespace", namespace, dns_label(namespace))


def _owners(errors: Errors, owners: Sequence[Obj], path: str) -> None:
    controller = ""
    for owner in owners:
        _owner(errors, owner, path)
        if owner.get("controller"):
            name = f"{owner['kind']}/{owner['name']}"
            if controller:
                what = (
                    'Only one reference can have Controller set to true. Found "true" in'
                    f" references for {controller} and {name}"
                )
                errors.append(invalid(path, owners, what))
            else:
                controller = name


def _owner(errors: Errors, owner: Obj, path: str) -> None:
    version = owner["apiVersion"].rpartition("/")[2]
    if not version:
        what = "version must not be empty"
        errors.append(invalid(f"{path}.apiVersion", owner["apiVersion"], what))
    for name in ("kind", "name", "uid"):
        if not owner[name]:
            errors.append(invalid(f"{path}.{name}", "", "must not be empty"))
    if owner["apiVersion"] == "v1" and owner["kind"] == "Event":
        what = "/v1, Kind=Event is disallowed from being an owner"
        errors.append(invalid(path, owner, what))


def _finalizers(errors: Errors, finalizers: Sequence[str], path: str) -> None:
    for name in finalizers:
        invalid_each(errors, path, name, label_key(name))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        what = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, finalizers, what))


def _no_new_finalizers(errors: Errors, new: Sequence[str], old: Sequence[str]) -> None:
    extra = sorted(set(new) - set(old))
    if extra:
        listed = ", ".join(f'"{name}"' for name in extra)
        what = (
            "no new finalizers can be added if the object is being deleted, found new finalizers"
            f" []string{{{listed}}}"
        )
        errors.append(forbidden_field("metadata.finalizers", what))


def _managed_fields(errors: Errors, entries: Sequence[Obj], path: str) -> None:
    for place, entry in enumerate(entries):
        operation, kind = entry.get("operation", ""), entry.get("fieldsType", "")
        if operation not in ("Apply", "Update"):
            what = "must be `Apply` or `Update`"
            errors.append(invalid(f"{path}[{place}].operation", operation, what))
        if kind and kind != "FieldsV1":
            errors.append(invalid(f"{path}[{place}].fieldsType", kind, "must be `FieldsV1`"))
        _manager(errors, entry.get("manager", ""), f"{path}[{place}].manager")
        if size(entry.get("subresource", "")) > _SUBRESOURCE_MAX:
            errors.append(too_long(f"{path}[{place}].subresource", _SUBRESOURCE_MAX))


def _manager(errors: Errors, manager: Any, path: str) -> None:
    if size(manager) > _MANAGER_MAX:
        errors.append(too_long(path, _MANAGER_MAX))
    if not manager.isprintable():
        place = 0
        for character in manager:
            if not character.isprintable():
                what = f"invalid character U+{ord(character):04X} (at position {place})"
                errors.append(invalid(path, manager, what))
            place += len(character.encode())
