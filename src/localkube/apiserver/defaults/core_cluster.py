"""Defaults of the core group's other kinds: namespaces, nodes, data, volumes, limits."""

import base64

from kubeclient.objects import Obj
from localkube.apiserver.defaults.pods import pod_template
from localkube.apiserver.defaults.volumes import claim_spec, persistent_source


def namespace(value: Obj) -> None:
    name = value["metadata"].get("name")
    if name:
        value["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    value["status"].setdefault("phase", "Active")


def node(value: Obj) -> None:
    spec, status = value["spec"], value["status"]
    # The older field is the first of the newer list; where they differ, the older one counts.
    if "podCIDR" in spec and spec.get("podCIDRs", [None])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif "podCIDRs" in spec:
        spec["podCIDR"] = spec["podCIDRs"][0]
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def secret(value: Obj) -> None:
    value.setdefault("type", "Opaque")
    texts = value.pop("stringData", None)
    if texts:
        encoded = {key: _base64(text.encode()) for key, text in texts.items()}
        value["data"] = value.get("data", {}) | encoded


def limit_range(value: Obj) -> None:
    for item in value["spec"].get("limits", ()):
        if item.get("type") == "Container":
            _container_limits(item)


def persistent_volume(value: Obj) -> None:
    value["status"].setdefault("phase", "Pending")
    value["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    value["spec"].setdefault("volumeMode", "Filesystem")
    persistent_source(value["spec"])


def persistent_volume_claim(value: Obj) -> None:
    claim_spec(value["spec"])
    value["status"].setdefault("phase", "Pending")


def pod_template_object(value: Obj) -> None:
    pod_template(value["template"])


def replication_controller(value: Obj) -> None:
    spec: Obj = value["spec"]
    if "template" in spec:
        pod_template(spec["template"])
        labels = spec["template"]["metadata"].get("labels")
        if labels:
            spec.setdefault("selector", dict(labels))
            value["metadata"].setdefault("labels", dict(labels))
    spec.setdefault("replicas", 1)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _container_limits(item: Obj) -> None:
    default = item.get("max", {}) | item.get("default", {})
    request = item.get("min", {}) | default | item.get("defaultRequest", {})
    if default:
        item["default"] = default
    if request:
        item["defaultRequest"] = request
