"""Defaults of a pod's volumes, by source."""

from collections.abc import Callable, Mapping
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.defaults.containers import field_ref, pull_policy

_READABLE = 0o644


def volume(value: Obj) -> None:
    if len(value) == 1:  # only a name
        value["emptyDir"] = {}
    for source, inner in value.items():
        default = _SOURCES.get(source)
        if default is not None:
            default(inner)


def claim_spec(value: Obj) -> None:
    value.setdefault("volumeMode", "Filesystem")


def _setting(**defaults: Any) -> Callable[[Obj], None]:
    def set_defaults(value: Obj) -> None:
        for name, default in defaults.items():
            value.setdefault(name, default)

    return set_defaults


_mode = _setting(defaultMode=_READABLE)


def _image(value: Obj) -> None:
    value.setdefault("pullPolicy", pull_policy(value.get("reference", "")))


def _downward(value: Obj) -> None:
    _mode(value)
    _downward_items(value)


def _downward_items(value: Obj) -> None:
    for item in value.get("items", ()):
        if "fieldRef" in item:
            field_ref(item["fieldRef"])


def _projected(value: Obj) -> None:
    _mode(value)
    for source in value.get("sources", ()):
        if "downwardAPI" in source:
            _downward_items(source["downwardAPI"])
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _ephemeral(value: Obj) -> None:
    if "volumeClaimTemplate" in value:
        claim_spec(value["volumeClaimTemplate"]["spec"])


_SOURCES: Mapping[str, Callable[[Obj], None]] = {
    "hostPath": _setting(type=""),
    "secret": _mode,
    "configMap": _mode,
    "downwardAPI": _downward,
    "projected": _projected,
    "ephemeral": _ephemeral,
    "image": _image,
    "iscsi": _setting(iscsiInterface="default"),
    "rbd": _setting(pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "azureDisk": _setting(cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared"),
    "scaleIO": _setting(storageMode="ThinProvisioned", fsType="xfs"),
}


def persistent_source(spec: Obj) -> None:
    """A PersistentVolume's own source has the same defaults as a pod's, where both exist."""
    for source in ("hostPath", "iscsi", "rbd", "azureDisk", "scaleIO"):
        if source in spec:
            _SOURCES[source](spec[source])
