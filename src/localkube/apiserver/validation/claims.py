"""PersistentVolumeClaims, and templates of them."""

from typing import Any

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    NOT_POSITIVE,
    Errors,
    difference,
    forbidden_field,
    invalid,
    invalid_each,
    not_supported,
    required,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, label_key
from localkube.apiserver.validation.metadata import (
    own_meta,
    own_meta_update,
    template_meta,
)
from localkube.apiserver.validation.resources import is_native, resource_value
from localkube.apiserver.validation.selectors import label_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_RESIZE_STATES = (
    *("ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress"),
    *("NodeResizeInfeasible", "NodeResizePending"),
)


def create(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    claim_spec(errors, obj["spec"], "spec")
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    errors += create(new)
    _class_annotation(errors, new, old)
    after, before = _comparable(new, old)
    if after != before:
        what = (
            "spec is immutable after creation except resources.requests and"
            " volumeAttributesClassName for bound claims\n" + difference(before, after)
        )
        errors.append(forbidden_field("spec", what))
    _size(errors, new, old)
    unchanged(errors, new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")
    _attributes_class(errors, new, old)
    return errors


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    if not new["spec"].get("accessModes"):
        errors.append(required("Spec.accessModes"))
    status = new.get("status", {})
    for name, text in status.get("capacity", {}).items():
        basic_amount(errors, text, f"status.capacity[{name}]")
    for name, state in status.get("allocatedResourceStatuses", {}).items():
        _allocated_name(errors, name, "status.allocatedResourceStatuses")
        if state not in _RESIZE_STATES:
            path = "status.allocatedResourceStatuses"
            errors.append(not_supported(path, name, _RESIZE_STATES))
    for name, text in status.get("allocatedResources", {}).items():
        path = f"status.allocatedResources[{name}]"
        if _allocated_name(errors, name, "status.allocatedResources") and basic_amount(
            errors, text, path
        ):
            resource_value(errors, "storage", text, path)
    return errors


def claim_template(errors: Errors, template: Obj, path: str) -> None:
    template_meta(errors, template["metadata"], f"{path}.metadata")
    claim_spec(errors, template["spec"], f"{path}.spec")


def claim_spec(errors: Errors, spec: Obj, path: str) -> None:
    if not spec.get("accessModes"):
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    label_selector(errors, spec.get("selector"), f"{path}.selector")
    access_modes(errors, spec.get("accessModes", ()), f"{path}.accessModes")
    _storage(errors, spec["resources"].get("requests", {}), f"{path}.resources[storage]")
    for name in ("storageClassName", "volumeAttributesClassName"):
        if name == "volumeAttributesClassName":
            _mode_and_sources(errors, spec, path)
        if spec.get(name):
            invalid_each(errors, f"{path}.{name}", spec[name], dns_subdomain(spec[name]))


def access_modes(errors: Errors, modes: Any, path: str) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            errors.append(not_supported(path, mode, ACCESS_MODES))
    known = [mode for mode in modes if mode in ACCESS_MODES]
    if "ReadWriteOncePod" in known and len(set(known)) > 1:
        what = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden_field(path, what))


def basic_amount(errors: Errors, text: str, path: str) -> bool:
    whole = quantity.value(quantity.parse(text))
    if whole < 0:
        errors.append(invalid(path, whole, "must be a valid resource quantity"))
    return whole >= 0


def _storage(errors: Errors, requests: Obj, path: str) -> None:
    text = requests.get("storage")
    if text is None:
        errors.append(required(path))
    elif quantity.parse(text).nanos <= 0:
        errors.append(invalid(path, text, NOT_POSITIVE))
    else:
        resource_value(errors, "storage", text, path)


def _mode_and_sources(errors: Errors, spec: Obj, path: str) -> None:
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        _data_source(errors, source, f"{path}.dataSource")
    if reference is not None:
        _data_source(errors, reference, f"{path}.dataSourceRef")
        namespace = reference.get("namespace")
        if namespace:
            at = f"{path}.dataSourceRef.namespace"
            invalid_each(errors, at, namespace, dns_label(namespace))
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        what = "may not be specified when dataSourceRef.namespace is specified"
        errors.append(invalid(path, {}, what))
    elif {**reference} != {**source}:
        errors.append(invalid(path, {}, "must match dataSourceRef"))


def _data_source(errors: Errors, source: Obj, path: str) -> None:
    for name in ("name", "kind"):
        if not source[name]:
            errors.append(required(f"{path}.{name}"))
    group = source.get("apiGroup", "")
    if not group and source["kind"] != "PersistentVolumeClaim":
        what = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, source["kind"], what))
    if group:
        invalid_each(errors, f"{path}.apiGroup", group, dns_subdomain(group))


def _class_annotation(errors: Errors, new: Obj, old: Obj) -> None:
    after = new["metadata"].get("annotations", {}).get(_CLASS_ANNOTATION, "")
    before = old["metadata"].get("annotations", {}).get(_CLASS_ANNOTATION, "")
    unchanged(errors, after, before, f"metadata.annotations.{_CLASS_ANNOTATION}")


def _comparable(new: Obj, old: Obj) -> tuple[Obj, Obj]:
    """Both specs, with what may change made equal."""
    after, before = dict(new["spec"]), dict(old["spec"])
    if not before.get("volumeName") and "volumeName" in after:
        before["volumeName"] = after["volumeName"]
    if "storageClassName" in after and "storageClassName" not in before:
        del after["storageClassName"]
    if new.get("status", {}).get("phase") == "Bound":
        requests = after["resources"].get("requests", {}) | {
            "storage": before["resources"].get("requests", {}).get("storage")
        }
        after["resources"] = after["resources"] | {"requests": requests}
        after.pop("volumeAttributesClassName", None)
        if "volumeAttributesClassName" in before:
            after["volumeAttributesClassName"] = before["volumeAttributesClassName"]
    return after, before


def _size(errors: Errors, new: Obj, old: Obj) -> None:
    asked, before = (
        quantity.parse(obj["spec"]["resources"].get("requests", {}).get("storage", "0"))
        for obj in (new, old)
    )
    have = quantity.parse(old.get("status", {}).get("capacity", {}).get("storage", "0"))
    if asked < before and asked <= have:
        what = "field can not be less than status.capacity"
        errors.append(forbidden_field("spec.resources.requests.storage", what))


def _attributes_class(errors: Errors, new: Obj, old: Obj) -> None:
    name = "volumeAttributesClassName"
    after, before = new["spec"].get(name), old["spec"].get(name)
    current = "currentVolumeAttributesClassName"
    if after == before or old.get("status", {}).get(current) is None or after:
        return
    to = "nil" if after is None else "empty string"
    what = f"update to {to} is forbidden when status.{current} is not nil"
    errors.append(forbidden_field(f"spec.{name}", what))


def _allocated_name(errors: Errors, name: str, path: str) -> bool:
    complaints = label_key(name)
    invalid_each(errors, path, name, complaints)
    if not complaints and is_native(name) and name != "storage":
        errors.append(not_supported(path, name, ("storage",)))
        return False
    return not complaints
