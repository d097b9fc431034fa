"""PersistentVolumes."""

import json
import posixpath
from collections.abc import Mapping

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.validation import volume_sources as source
from localkube.apiserver.validation.affinity import node_selector
from localkube.apiserver.validation.claims import (
    VOLUME_MODES,
    access_modes,
    basic_amount,
)
from localkube.apiserver.validation.errors import (
    IMMUTABLE,
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
from localkube.apiserver.validation.formats import dns_label, dns_subdomain
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.paths import no_backsteps
from localkube.apiserver.validation.volumes import NO_TYPE, ONE_TYPE

_NEW_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_RECLAIM = ("Delete", "Recycle", "Retain")


def create(obj: Obj) -> Errors:
    errors: Errors = []
    _volume(errors, obj)
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    _volume(errors, new)
    _volume(errors, new)
    after, before = _sources(new["spec"]), _sources(old["spec"])
    if "controllerExpandSecretRef" not in before.get("csi", {}) and "csi" in after:
        csi = after["csi"].items()
        after["csi"] = {k: v for k, v in csi if k != "controllerExpandSecretRef"}
    if after != before:
        changes = difference(before, after)
        what = f"spec.persistentvolumesource is immutable after creation\n{changes}"
        errors.append(forbidden_field("spec.persistentvolumesource", what))
    name = "volumeMode"
    unchanged(errors, new["spec"].get(name), old["spec"].get(name), name)
    _same_nodes(errors, new["spec"].get("nodeAffinity"), old["spec"].get("nodeAffinity"))
    name = "volumeAttributesClassName"
    if old["spec"].get(name) is not None and new["spec"].get(name) is None:
        what = "update from non-nil value to nil is forbidden"
        errors.append(forbidden_field(f"spec.{name}", what))
    return errors


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    return errors


def _volume(errors: Errors, obj: Obj) -> None:
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    spec, path = obj["spec"], "spec"
    if not spec.get("accessModes"):
        errors.append(required("spec.accessModes"))
    access_modes(errors, spec.get("accessModes", ()), "spec.accessModes")
    _capacity(errors, spec.get("capacity", {}))
    reclaim = spec["persistentVolumeReclaimPolicy"]
    if reclaim not in _RECLAIM:
        at = "spec.persistentVolumeReclaimPolicy"
        errors.append(not_supported(at, reclaim, _RECLAIM))
    if "nodeAffinity" in spec:
        _node_affinity(errors, spec["nodeAffinity"], "spec.nodeAffinity")
    _source(errors, spec, obj["metadata"].get("name", ""), path)
    root = posixpath.normpath(spec.get("hostPath", {}).get("path", "")) == "/"
    if root and reclaim == "Recycle":
        what = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden_field("spec.persistentVolumeReclaimPolicy", what))
    _classes(errors, spec)


def _classes(errors: Errors, spec: Obj) -> None:
    name = spec.get("storageClassName")
    if name:
        invalid_each(errors, "spec.storageClassName", name, dns_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported("spec.volumeMode", mode, VOLUME_MODES))
    name, path = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if name is None:
        return
    if not name:
        errors.append(required(path, "an empty string is disallowed"))
    else:
        invalid_each(errors, path, name, dns_subdomain(name))
    if "csi" not in spec:
        what = "has to be specified when using volumeAttributesClassName"
        errors.append(required("spec.csi", what))


def _capacity(errors: Errors, capacity: Mapping[str, str]) -> None:
    path = "spec.capacity"
    if not capacity:
        errors.append(required(path))
    if list(capacity) != ["storage"]:
        errors.append(not_supported(path, dict(capacity) or None, ("storage",)))
    for name, text in capacity.items():
        basic_amount(errors, text, f"{path}[{name}]")
        if quantity.parse(text).nanos <= 0:
            errors.append(invalid(f"{path}[{name}]", text, NOT_POSITIVE))


def _node_affinity(errors: Errors, affinity: Obj, path: str) -> None:
    if "required" in affinity:
        node_selector(errors, affinity["required"], f"{path}.required")
    else:
        what = "must specify required node constraints"
        errors.append(required(f"{path}.required", what))


def _same_nodes(errors: Errors, affinity: Obj | None, old: Obj | None) -> None:
    if old is None or affinity == old or _with_new_labels(affinity) == _with_new_labels(old):
        return
    what = f"{IMMUTABLE}, except for updating from beta label to GA"
    errors.append(invalid("nodeAffinity", affinity, what))


def _with_new_labels(affinity: Obj | None) -> str:
    text = json.dumps(affinity, sort_keys=True)
    for old, new in _NEW_LABELS.items():
        text = text.replace(f'"key": "{old}"', f'"key": "{new}"')
    return text


def _sources(spec: Obj) -> Obj:
    return {name: spec[name] for name in _SOURCES if name in spec}


def _source(errors: Errors, spec: Obj, name: str, path: str) -> None:
    found = [kind for kind in _SOURCES if kind in spec]
    if not found:
        errors.append(required(path, NO_TYPE))
        return
    _SOURCES[found[0]](errors, spec[found[0]], f"{path}.{found[0]}")
    for kind in found[1:]:
        errors.append(forbidden_field(f"{path}.{kind}", ONE_TYPE))
    if found[0] == "local" and "nodeAffinity" not in spec:
        errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))


def _local(errors: Errors, value: Obj, path: str) -> None:
    if not value["path"]:
        errors.append(required(f"{path}.path"))
    else:
        no_backsteps(errors, value["path"], f"{path}.path")


def _csi(errors: Errors, value: Obj, path: str) -> None:
    source.csi_driver_name(errors, value["driver"], f"{path}.driver")
    if not value["volumeHandle"]:
        errors.append(required(f"{path}.volumeHandle"))
    for name in (
        *("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef"),
        "nodeExpandSecretRef",
    ):
        if name in value:
            _secret(errors, value[name], f"{path}.{name}")


def _secret(errors: Errors, reference: Obj, path: str) -> None:
    for part, check in (("name", dns_subdomain), ("namespace", dns_label)):
        text = reference.get(part, "")
        if not text:
            errors.append(required(f"{path}.{part}"))
        else:
            invalid_each(errors, f"{path}.{part}", text, check(text))


_SOURCES: Mapping[str, source.Rule] = {
    "hostPath": source.host_path,
    "nfs": source.nfs,
    "local": _local,
    "csi": _csi,
} | dict.fromkeys(source.OF_VENDORS, source.schema_alone)
