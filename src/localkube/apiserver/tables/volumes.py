"""Rows of storage."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.tables.texts import (
    NONE,
    UNSET,
    access_modes,
    age,
    deleting,
    name,
    spec_of,
    status_of,
    storage_class,
)

_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def persistent_volume(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    claim = spec.get("claimRef")
    return [
        name(thing),
        (spec.get("capacity") or {}).get("storage", "0"),
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if deleting(thing) else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        storage_class(thing),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason", ""),
        age(thing, now_s),
        spec.get("volumeMode", UNSET),
    ]


def persistent_volume_claim(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    bound = bool(spec.get("volumeName"))
    return [
        name(thing),
        "Terminating" if deleting(thing) else status.get("phase", ""),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        access_modes(status.get("accessModes")) if bound else "",
        storage_class(thing),
        spec.get("volumeAttributesClassName", UNSET),
        age(thing, now_s),
        spec.get("volumeMode", UNSET),
    ]


def storage_class_row(thing: Obj, now_s: float) -> list[Any]:
    annotations = thing["metadata"].get("annotations") or {}
    default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS_ANNOTATIONS)
    return [
        f"{name(thing)} (default)" if default else name(thing),
        thing.get("provisioner", ""),
        thing.get("reclaimPolicy", "Delete"),
        thing.get("volumeBindingMode", "Immediate"),
        thing.get("allowVolumeExpansion", False),
        age(thing, now_s),
    ]


def volume_attachment(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    return [
        name(thing),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        status_of(thing).get("attached", False),
        age(thing, now_s),
    ]


def csi_node(thing: Obj, now_s: float) -> list[Any]:
    return [name(thing), len(spec_of(thing).get("drivers") or ()), age(thing, now_s)]


def csi_driver(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    audiences = [each.get("audience", "") for each in spec.get("tokenRequests") or ()]
    return [
        name(thing),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if spec.get("tokenRequests") is None else ",".join(audiences),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(thing, now_s),
    ]
