"""Whether an object from a file has the fields that decisions read, and of the right types.

Behind a snapshot is no API server that would refuse it. Only shapes are looked at here: what a
field says is judged where it is read.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kubeclient.objects import Obj

Amount = str | int | float  # manifests may have plain numbers


class _Fields(NamedTuple):
    """Those that are not listed may be anything. All may be missing, except `needed`."""

    listed: Mapping[str, object]
    needed: tuple[str, ...] = ()


class _Each(NamedTuple):
    of: object


class _Named(NamedTuple):
    """Fields with any names."""

    of: object


_TEXTS = _Named(str)
_AMOUNTS = _Named(Amount)
_RESOURCES = _Fields({"limits": _AMOUNTS, "requests": _AMOUNTS})
_OWNER = _Fields({"kind": str, "uid": str, "controller": bool}, ("uid",))
_METADATA = _Fields(
    {
        "name": str,
        "namespace": str,
        "uid": str,
        "resourceVersion": str,
        "generation": int,
        "creationTimestamp": str,
        "deletionGracePeriodSeconds": int,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": _Each(_OWNER),
    },
    ("name",),
)
_PORT = _Fields({"hostPort": int, "hostIP": str, "protocol": str})
_CONTAINER = _Fields(
    {"name": str, "resources": _RESOURCES, "ports": _Each(_PORT), "restartPolicy": str}, ("name",)
)
_TOLERATION = _Fields(dict.fromkeys(("key", "operator", "value", "effect"), str))
_CLAIM = _Fields({"claimName": str}, ("claimName",))
_VOLUME = _Fields({"name": str, "persistentVolumeClaim": _CLAIM}, ("name",))
_REQUIREMENT = _Fields({"key": str, "operator": str, "values": _Each(str)}, ("key", "operator"))
_NODE_TERM = _Fields({"matchExpressions": _Each(_REQUIREMENT), "matchFields": _Each(_REQUIREMENT)})
_NODE_TERMS = _Fields({"nodeSelectorTerms": _Each(_NODE_TERM)}, ("nodeSelectorTerms",))
_SELECTOR = _Fields({"matchLabels": _TEXTS, "matchExpressions": _Each(_REQUIREMENT)})
_POD_TERM = _Fields(
    {
        "topologyKey": str,
        "labelSelector": _SELECTOR,
        "namespaceSelector": _SELECTOR,
        "namespaces": _Each(str),
        "matchLabelKeys": _Each(str),
        "mismatchLabelKeys": _Each(str),
    },
    ("topologyKey",),
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHED_NODE = _Fields({"weight": int, "preference": _NODE_TERM}, ("weight", "preference"))
_WEIGHED_POD = _Fields({"weight": int, "podAffinityTerm": _POD_TERM}, ("weight", "podAffinityTerm"))
_NEAR_PODS = _Fields({_REQUIRED: _Each(_POD_TERM), _PREFERRED: _Each(_WEIGHED_POD)})
_AFFINITY = _Fields(
    {
        "nodeAffinity": _Fields({_REQUIRED: _NODE_TERMS, _PREFERRED: _Each(_WEIGHED_NODE)}),
        "podAffinity": _NEAR_PODS,
        "podAntiAffinity": _NEAR_PODS,
    }
)
_SPREAD = _Fields(
    {
        "topologyKey": str,
        "maxSkew": int,
        "minDomains": int,
        "whenUnsatisfiable": str,
        "nodeAffinityPolicy": str,
        "nodeTaintsPolicy": str,
        "labelSelector": _SELECTOR,
        "matchLabelKeys": _Each(str),
    },
    ("topologyKey", "maxSkew", "whenUnsatisfiable"),
)
_POD_SPEC = _Fields(
    {
        "affinity": _AFFINITY,
        "topologySpreadConstraints": _Each(_SPREAD),
        "containers": _Each(_CONTAINER),
        "initContainers": _Each(_CONTAINER),
        "volumes": _Each(_VOLUME),
        "tolerations": _Each(_TOLERATION),
        "nodeSelector": _TEXTS,
        "nodeName": str,
        "schedulerName": str,
        "priority": int,
        "priorityClassName": str,
        "runtimeClassName": str,
        "overhead": _AMOUNTS,
        "resources": _RESOURCES,
    },
    ("containers",),
)
_CONDITION = _Fields(dict.fromkeys(("type", "status", "message", "lastTransitionTime"), str))
_CONTAINER_STATUS = _Fields(
    {"name": str, "resources": _RESOURCES, "allocatedResources": _AMOUNTS}, ("name",)
)
_POD_STATUS = _Fields(
    {
        "phase": str,
        "startTime": str,
        "nominatedNodeName": str,
        "conditions": _Each(_CONDITION),
        "containerStatuses": _Each(_CONTAINER_STATUS),
        "initContainerStatuses": _Each(_CONTAINER_STATUS),
        "resources": _RESOURCES,
    }
)
_TAINT = _Fields({"key": str, "value": str, "effect": str}, ("key", "effect"))
_NODE_SPEC = _Fields({"taints": _Each(_TAINT), "unschedulable": bool})
_POD = _Fields(
    {"metadata": _METADATA, "spec": _POD_SPEC, "status": _POD_STATUS}, ("metadata", "spec")
)
_NODE = _Fields(
    {"metadata": _METADATA, "spec": _NODE_SPEC, "status": _Fields({"allocatable": _AMOUNTS})},
    ("metadata",),
)
_CLAIM_OBJECT = _Fields(
    {
        "metadata": _METADATA,
        "spec": _Fields({"volumeName": str, "storageClassName": str, "accessModes": _Each(str)}),
        "status": _Fields({"phase": str}),
    },
    ("metadata", "spec"),
)
_REF = _Fields(dict.fromkeys(("name", "namespace", "uid"), str))
_VOLUME_OBJECT = _Fields(
    {
        "metadata": _METADATA,
        "spec": _Fields(
            {
                "claimRef": _REF,
                "csi": _Fields({"driver": str, "volumeHandle": str}),
                "nodeAffinity": _Fields({"required": _NODE_TERMS}),
            }
        ),
    },
    ("metadata", "spec"),
)
# Of all others what says which one it is: one that cannot be read is left out with its name.
_NAMED_OBJECT = _Fields(
    {"metadata": _Fields({"name": str, "namespace": str}, ("name",))}, ("metadata",)
)
_SHAPES = {
    "Pod": _POD,
    "Node": _NODE,
    "PersistentVolumeClaim": _CLAIM_OBJECT,
    "PersistentVolume": _VOLUME_OBJECT,
}
_WORDS: Mapping[object, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    list: "a list",
    dict: "fields",
    type(None): "null",
}


def wrong_pod(pod: Obj) -> str:
    """The first field that is not as it should be, and what it should be; empty: there is none."""
    return _wrong(pod, _POD, "")


def wrong_object(obj: Obj) -> str:
    """The same for an object of any kind."""
    return _wrong(obj, _SHAPES.get(str(obj.get("kind")), _NAMED_OBJECT), "")


def _wrong(value: object, shape: object, path: str) -> str:
    match shape:
        case _Fields(listed, needed):
            if not isinstance(value, dict):
                return _said(path, "fields", value)
            found = (
                _of_field(value, name, of, f"{path}.{name}" if path else name, name in needed)
                for name, of in listed.items()
            )
        case _Each(of):
            if not isinstance(value, list):
                return _said(path, "a list", value)
            found = (_wrong(each, of, f"{path}[{at}]") for at, each in enumerate(value))
        case _Named(of):
            if not isinstance(value, dict):
                return _said(path, "fields", value)
            found = (_wrong(each, of, f"{path}.{name}") for name, each in value.items())
        case _:
            return _wrong_plain(value, shape, path)
    return next(filter(None, found), "")


def _of_field(fields: Obj, name: str, shape: object, path: str, is_needed: bool) -> str:
    value = fields.get(name)
    if value is not None:
        return _wrong(value, shape, path)
    return f"{path}: wanted {_wanted(shape)}, found nothing" if is_needed else ""


def _wrong_plain(value: object, shape: object, path: str) -> str:
    # For Python true is a number.
    fits = shape is bool if isinstance(value, bool) else isinstance(value, shape)  # type: ignore[arg-type]
    return "" if fits else _said(path, _wanted(shape), value)


def _wanted(shape: object) -> str:
    match shape:
        case _Fields() | _Named():
            return "fields"
        case _Each():
            return "a list"
        case _:
            return _WORDS.get(shape, "a number or a text")


def _said(path: str, wanted: str, value: object) -> str:
    found = "a number" if type(value) in (int, float) else _WORDS.get(type(value), "something else")
    return f"{path}: wanted {wanted}, found {found}"
