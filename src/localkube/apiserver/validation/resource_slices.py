"""Devices that drivers offer."""

import re
from collections.abc import Sequence
from functools import partial

from kubeclient.objects import Obj
from localkube.apiserver.validation.affinity import node_selector
from localkube.apiserver.validation.device_capacity import request_policy
from localkube.apiserver.validation.devices import (
    attribute_name,
    binding_conditions,
    device_name,
    distinct,
    driver_name,
    each,
    pool_name,
    taint,
)
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    positive,
    required,
    too_long,
    too_many,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, size
from localkube.apiserver.validation.internal import printed
from localkube.apiserver.validation.metadata import own_meta, own_meta_update

_DEVICES_MAX = 128
_SPECIAL_DEVICES_MAX = 64
_COUNTER_SETS_MAX = 8
_COUNTERS_MAX = 32
_CONSUMPTIONS_MAX = 2
_ATTRIBUTES_MAX = 32
_ATTRIBUTE_NAME_MAX = 63 + 1 + 32
_LABEL_MAX = 63
_VALUE_MAX = 64
_TAINTS_MAX = 16
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_DEVICE_PLACES = _PLACES[:3]
_PLACE_TEXT = f"exactly one of {', '.join(f'`{name}`' for name in _PLACES)} is required"
_DEVICE_PLACE_TEXT = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when"
    " `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE_TEXT = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set"
    " to true in the ResourceSlice spec"
)
_NUMBER = "(0|[1-9][0-9]*)"
_PRERELEASE = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?"
).fullmatch


def create(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    _spec(errors, obj["spec"], None)
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _spec(errors, new["spec"], old["spec"])
    return errors


def _spec(errors: Errors, spec: Obj, old: Obj | None) -> None:
    driver_name(errors, spec["driver"], "spec.driver")
    pool = spec["pool"]
    pool_name(errors, pool["name"], "spec.pool.name")
    positive(errors, pool["resourceSliceCount"], "spec.pool.resourceSliceCount")
    if pool["generation"] < 0:
        what = "must be greater than or equal to zero"
        errors.append(invalid("spec.pool.generation", pool["generation"], what))
    if old is not None:
        unchanged(errors, pool["name"], old["pool"]["name"], "spec.pool.name")
        for name in ("driver", "nodeName"):
            unchanged(errors, spec.get(name), old.get(name), f"spec.{name}")
    _place(errors, spec)
    devices, sets = spec.get("devices", []), spec.get("sharedCounters", [])
    if devices and sets:
        what = "only one of `sharedCounters` or `devices` is allowed"
        errors.append(invalid("spec", "", what))
    special = any(one.get("taints") or one.get("consumesCounters") for one in devices)
    most = _SPECIAL_DEVICES_MAX if special else _DEVICES_MAX
    before = {one["name"]: one for one in old.get("devices", ())} if old else {}
    placed = bool(spec.get("perDeviceNodeSelection"))
    if each(errors, devices, most, partial(_device, old=before, placed=placed), "spec.devices"):
        distinct(errors, (one["name"] for one in devices), "spec.devices")
    if each(errors, sets, _COUNTER_SETS_MAX, _counter_set, "spec.sharedCounters"):
        distinct(errors, (one["name"] for one in sets), "spec.sharedCounters")


def _place(errors: Errors, spec: Obj) -> None:
    chosen = _chosen(
        errors, spec, _PLACES, "spec", "must be either unset or set to a non-empty string"
    )
    selector = spec.get("nodeSelector")
    if selector is not None and len(terms := selector.get("nodeSelectorTerms") or []) != 1:
        shown = printed(terms or None, "[]core.NodeSelectorTerm")
        what = "must have exactly one node selector term"
        errors.append(invalid("spec.nodeSelector.nodeSelectorTerms", shown, what))
    if not chosen:
        errors.append(required("spec", _PLACE_TEXT))
    elif len(chosen) > 1:
        what = f"{_PLACE_TEXT}, but multiple fields are set"
        errors.append(invalid("spec", _braced(chosen), what))


def _chosen(
    errors: Errors, holder: Obj, places: Sequence[str], path: str, empty_name: str
) -> list[str]:
    """Which ways to say where devices are, are used."""
    chosen = []
    for name in places:
        value = holder.get(name)
        if value is None:
            continue
        if name == "nodeSelector":
            node_selector(errors, value, f"{path}.{name}")
        elif not value:
            what = empty_name if name == "nodeName" else "must be either unset or set to true"
            errors.append(invalid(f"{path}.{name}", value, what))
            continue
        elif name == "nodeName":
            invalid_each(errors, f"{path}.{name}", value, dns_subdomain(value))
        chosen.append(name)
    return chosen


def _braced(names: Sequence[str]) -> str:
    return f"{{{', '.join(f'`{name}`' for name in names)}}}"


def _device(errors: Errors, device: Obj, path: str, *, old: dict[str, Obj], placed: bool) -> None:
    device_name(errors, device["name"], f"{path}.name")
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    total = len(attributes) + len(capacity)
    if total > _ATTRIBUTES_MAX:
        what = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES_MAX}"
        errors.append(invalid(path, total, what))
    for name in sorted(attributes):
        at = f"{path}.attributes[{_shortened(name, _ATTRIBUTE_NAME_MAX)}]"
        attribute_name(errors, name, at)
        _attribute(errors, attributes[name], at)
    for name in sorted(capacity):
        at = f"{path}.capacity[{_shortened(name, _ATTRIBUTE_NAME_MAX)}]"
        attribute_name(errors, name, at)
        _capacity(errors, capacity[name], at, shared=bool(device.get("allowMultipleAllocations")))
    taints = device.get("taints", [])
    if taints != old.get(device["name"], {}).get("taints", []):
        each(errors, taints, _TAINTS_MAX, taint, f"{path}.taints")
    consumed = device.get("consumesCounters", [])
    if each(errors, consumed, _CONSUMPTIONS_MAX, _consumption, f"{path}.consumesCounters"):
        distinct(errors, (one["counterSet"] for one in consumed), f"{path}.consumesCounters")
    _device_place(errors, device, path, placed=placed)
    binding_conditions(errors, device, path)


def _device_place(errors: Errors, device: Obj, path: str, *, placed: bool) -> None:
    if not placed:
        if any(device.get(name) is not None for name in _DEVICE_PLACES):
            errors.append(invalid(path, "null", _NO_DEVICE_PLACE_TEXT))
        return
    chosen = _chosen(errors, device, _DEVICE_PLACES, path, "must not be empty")
    if not chosen:
        errors.append(required(path, _DEVICE_PLACE_TEXT))
    elif len(chosen) > 1:
        errors.append(invalid(path, _braced(chosen), _DEVICE_PLACE_TEXT))


def _attribute(errors: Errors, attribute: Obj, path: str) -> None:
    text, version = attribute.get("string"), attribute.get("version")
    if text is not None and size(text) > _VALUE_MAX:
        errors.append(too_long(f"{path}.string", _VALUE_MAX))
    if version is not None:
        if not _is_version(version):
            what = "must be a string compatible with semver.org spec 2.0.0"
            errors.append(invalid(f"{path}.version", version, what))
        if size(version) > _VALUE_MAX:
            errors.append(too_long(f"{path}.version", _VALUE_MAX))
    given = sum(name in attribute for name in ("int", "bool", "string", "version"))
    if given != 1:
        shown = printed(attribute, "resource.DeviceAttribute") if given else ""
        errors.append(invalid(path, shown, "exactly one value must be specified"))


def _capacity(errors: Errors, capacity: Obj, path: str, *, shared: bool) -> None:
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if shared:
        request_policy(errors, policy, capacity["value"], path)
    else:
        errors.append(forbidden_field(path, "allowMultipleAllocations must be true"))


def _consumption(errors: Errors, value: Obj, path: str) -> None:
    _counters(errors, value, "counterSet", path)


def _counter_set(errors: Errors, value: Obj, path: str) -> None:
    _counters(errors, value, "name", path)


def _counters(errors: Errors, value: Obj, key: str, path: str) -> None:
    if not value[key]:
        errors.append(required(f"{path}.{key}"))
    else:
        invalid_each(errors, f"{path}.{key}", value[key], dns_label(value[key]))
    counters = value.get("counters", {})
    if not counters:
        errors.append(required(f"{path}.counters"))
    elif len(counters) > _COUNTERS_MAX:
        errors.append(too_many(f"{path}.counters", len(counters), _COUNTERS_MAX))
    else:
        for name in sorted(counters):
            at = f"{path}.counters[{_shortened(name, _LABEL_MAX)}]"
            invalid_each(errors, at, name, dns_label(name))


def _shortened(text: str, most: int) -> str:
    """Long keys lose their middle."""
    if len(text) <= most:
        return text
    kept = most - len("...")
    return f"{text[: (kept + 1) // 2]}...{text[len(text) - kept // 2 :]}"
