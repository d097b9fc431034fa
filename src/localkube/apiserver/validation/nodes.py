"""Nodes and Namespaces."""

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.validation.addresses import is_ipv6, valid_cidr
from localkube.apiserver.validation.affinity import taints
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    positive,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, label_key
from localkube.apiserver.validation.metadata import (
    kubernetes_finalizer,
    own_meta,
    own_meta_update,
)
from localkube.apiserver.validation.resources import resource_value

_OLD_TAINTS = "scheduler.alpha.kubernetes.io/taints"


def create_node(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    _annotations(errors, obj["metadata"])
    # The path is metadata's in Kubernetes.
    taints(errors, obj["spec"].get("taints", ()), "metadata.taints")
    _resources(errors, obj)
    swap = obj.get("status", {}).get("nodeInfo", {}).get("swap", {})
    if "capacity" in swap:
        positive(errors, swap["capacity"], "metadata.nodeSwapStatus.capacity")
    _pod_ranges(errors, obj["spec"].get("podCIDRs", []))
    return errors


def update_node(new: Obj, old: Obj) -> Errors:
    return create_node(new) + node_status(new, old)


def node_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _annotations(errors, new["metadata"])
    _resources(errors, new)
    _addresses(errors, new.get("status", {}).get("addresses", ()))
    after, before = new["spec"].get("podCIDRs", []), old["spec"].get("podCIDRs", [])
    if before and after != before:
        changed = sum(a != b for a, b in zip(after, before, strict=False))
        for _ in range(changed if len(after) == len(before) else 1):
            what = 'node updates may not change podCIDR except from "" to valid'
            errors.append(forbidden_field("spec.podCIDRs", what))
    provider = old["spec"].get("providerID", "")
    if provider and provider != new["spec"].get("providerID", ""):
        what = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden_field("spec.providerID", what))
    taints(errors, new["spec"].get("taints", ()), "metadata.taints")
    if new["spec"].get("externalID") != old["spec"].get("externalID"):
        errors.append(forbidden_field("spec.externalID", "may not be updated"))
    return errors


def create_namespace(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_label, namespaced=False)
    for name in obj["spec"].get("finalizers", ()):
        _namespace_finalizer(errors, name, "spec.finalizers")
    return errors


def update_namespace(new: Obj, old: Obj) -> Errors:
    errors = create_namespace(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def namespace_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    phase = new.get("status", {}).get("phase", "")
    if "deletionTimestamp" in new["metadata"]:
        wanted, what = (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    else:
        wanted, what = "Active", "may only be 'Active' if `deletionTimestamp` is empty"
    if phase != wanted:
        errors.append(invalid("status.Phase", phase, what))
    return errors


def namespace_finalize(new: Obj, old: Obj) -> Errors:
    """Through namespaces/finalize."""
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    for place, name in enumerate(new["spec"].get("finalizers", ())):
        _namespace_finalizer(errors, name, f"spec.finalizers[{place}]")
    return errors


def _namespace_finalizer(errors: Errors, name: str, path: str) -> None:
    invalid_each(errors, path, name, label_key(name))
    kubernetes_finalizer(errors, name, path)


def _annotations(errors: Errors, metadata: Obj) -> None:
    text = metadata.get("annotations", {}).get(_OLD_TAINTS)
    if not text:
        return
    path = "metadata.annotations"
    try:
        listed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        errors.append(invalid(path, _OLD_TAINTS, str(error)))
        return
    if isinstance(listed, list) and all(isinstance(one, dict) for one in listed):
        complete = [{"key": "", "effect": ""} | one for one in listed]
        taints(errors, complete, f"{path}.{_OLD_TAINTS}")


def _resources(errors: Errors, obj: Obj) -> None:
    for group in ("capacity", "allocatable"):
        for name, text in obj.get("status", {}).get(group, {}).items():
            resource_value(errors, name, text, f"status.{group}.{name}")


def _pod_ranges(errors: Errors, ranges: list[str]) -> None:
    for place, text in enumerate(ranges):
        valid_cidr(errors, f"spec.podCIDRs[{place}]", text)
    if len(ranges) > 1:
        families = {is_ipv6(text.partition("/")[0]) for text in ranges}
        if len(families) == 1 or len(ranges) > 2:
            what = "may specify no more than one CIDR for each IP family"
            errors.append(invalid("spec.podCIDRs", ranges, what))


def _addresses(errors: Errors, addresses: list[Obj]) -> None:
    seen: set[tuple[str, str]] = set()
    for place, address in enumerate(addresses):
        key = (address["type"], address["address"])
        if key in seen:
            errors.append(duplicate(f"status.addresses[{place}]", address))
        seen.add(key)
