"""Snapshots: the objects of a cluster that decisions depend on, without what is nobody's business.

Only what is listed here is kept, so that a new field of Kubernetes with something secret in it does
not get into a file that people send to each other. Commands, variables, images, mounts and foreign
annotations are left out.
"""

from collections.abc import Callable, Iterable, Mapping

from gpupool.contract.names import API_GROUP
from kubeclient.objects import Obj

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
)
_OWNER = ("apiVersion", "kind", "name", "uid", "controller")
_ANNOTATION_PREFIXES = ("ALIYUN_COM_GPU", "pv.kubernetes.io/", "kubernetes.io/config.mirror")
_POD_SPEC = (
    "nodeName",
    "schedulerName",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "overhead",
    "resources",
    "resourceClaims",
    "schedulingGates",
    "runtimeClassName",
    "hostNetwork",
    "restartPolicy",
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
)
_POD_STATUS = ("phase", "nominatedNodeName", "startTime", "resize", "resources")
_CONDITION = ("type", "status", "reason", "lastTransitionTime")
_SCHEDULED = "PodScheduled"  # its message says where room is kept. Others' may say anything
_CONTAINER = ("name", "resources", "ports", "restartPolicy")
_CONTAINER_STATUS = ("name", "resources", "allocatedResources")
_NODE_SPEC = ("taints", "unschedulable")
_NODE_STATUS = ("allocatable", "capacity")
_VOLUME_SPEC = ("claimRef", "nodeAffinity", "storageClassName", "accessModes", "capacity")
_CLAIM_SPEC = ("volumeName", "storageClassName", "accessModes", "resources", "volumeMode")


def snapshot(objects: Iterable[Obj]) -> Obj:
    """As a List, which kubectl and `gpupool replay` read, too."""
    return {"apiVersion": "v1", "kind": "List", "items": [trimmed(obj) for obj in objects]}


def trimmed(obj: Obj) -> Obj:
    """A copy with nothing but the fields that decisions depend on."""
    about = _only(obj, ("apiVersion", "kind"))
    parts = _PARTS.get(str(obj.get("kind", "")), _whole())(obj)
    return {**about, "metadata": _metadata(obj["metadata"]), **parts}


def _metadata(metadata: Obj) -> Obj:
    found = _only(metadata, _METADATA)
    notes = metadata.get("annotations") or {}
    kept = {key: value for key, value in notes.items() if _is_kept(key)}
    if kept:
        found["annotations"] = kept
    owners = [_only(owner, _OWNER) for owner in metadata.get("ownerReferences") or ()]
    return found | ({"ownerReferences": owners} if owners else {})


def _is_kept(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    ours = domain == API_GROUP or domain.endswith(f".{API_GROUP}")
    return ours or annotation.startswith(_ANNOTATION_PREFIXES)


def _only(fields: Mapping[str, object], names: Iterable[str]) -> Obj:
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _pod(pod: Obj) -> Obj:
    spec, status = pod["spec"], pod.get("status") or {}
    kept = _only(spec, _POD_SPEC)
    for part in ("containers", "initContainers"):
        if spec.get(part):
            kept[part] = [_only(container, _CONTAINER) for container in spec[part]]
    claims = [_claim_of(volume) for volume in spec.get("volumes") or ()]
    if any(claims):
        kept["volumes"] = [claim for claim in claims if claim]
    seen = _only(status, _POD_STATUS) | _conditions(status)
    for part in ("containerStatuses", "initContainerStatuses"):
        if status.get(part):
            seen[part] = [_only(each, _CONTAINER_STATUS) for each in status[part]]
    return {"spec": kept, "status": seen}


def _conditions(status: Obj) -> Obj:
    found = []
    for each in status.get("conditions") or ():
        fields = (*_CONDITION, "message") if each.get("type") == _SCHEDULED else _CONDITION
        found.append(_only(each, fields))
    return {"conditions": found} if found else {}


def _claim_of(volume: Obj) -> Obj:
    if volume.get("persistentVolumeClaim"):
        return _only(volume, ("name", "persistentVolumeClaim"))
    # Of the template only that there is one: its claim is an object of its own.
    return {"name": volume["name"], "ephemeral": {"of": "pod"}} if volume.get("ephemeral") else {}


def _node(node: Obj) -> Obj:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    kept = _only(status, _NODE_STATUS) | _conditions(status)
    return {"spec": _only(spec, _NODE_SPEC), "status": kept}


def _volume(volume: Obj) -> Obj:
    spec = _only(volume["spec"], _VOLUME_SPEC)
    csi = volume["spec"].get("csi")
    if csi:
        spec["csi"] = _only(csi, ("driver", "volumeHandle"))
    return {"spec": spec, "status": _only(volume.get("status") or {}, ("phase",))}


def _claim(claim: Obj) -> Obj:
    status = _only(claim.get("status") or {}, ("phase",))
    return {"spec": _only(claim["spec"], _CLAIM_SPEC), "status": status}


def _whole(*names: str) -> Callable[[Obj], Obj]:
    """Kinds that have nothing secret in these fields."""
    return lambda obj: _only(obj, names)


_PARTS: Mapping[str, Callable[[Obj], Obj]] = {
    "Node": _node,
    "Pod": _pod,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Namespace": _whole(),
    "PodDisruptionBudget": _whole("spec", "status"),
    "ResourceQuota": _whole("spec", "status"),
    "StorageClass": _whole("provisioner", "volumeBindingMode", "reclaimPolicy"),
    "CSINode": _whole("spec"),
}
