"""What the server itself writes into metadata, on the way to the store."""

import os
import random

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.kinds import Kind
from localkube.apiserver.routing import Target
from localkube.apiserver.status import MODIFIED, ApiError

# Seeded by the system once: asking it for every object costs more than storing one.
_random = random.Random(os.urandom(32))

# As in Kubernetes: without vowels and the digits that resemble them, so that no words appear.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_NAME_PREFIX_LIMIT = 58  # 63 less the suffix

# Metadata that a client may send but only the server decides.
_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def generated_name(prefix: str) -> str:
    suffix = "".join(_random.choices(_SUFFIX_ALPHABET, k=5))
    return prefix[:_NAME_PREFIX_LIMIT] + suffix


def new_uid() -> str:
    """A random UUID (version 4)."""
    bits = _random.getrandbits(128) & ~(0xF << 76 | 0xC << 60) | 0x4 << 76 | 0x8 << 60
    digits = f"{bits:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def place(obj: Obj, target: Target) -> None:
    """Puts the object where the URL says; the body may repeat that, not contradict it."""
    metadata = obj.setdefault("metadata", {})
    if target.kind.namespaced:
        given = metadata.get("namespace") or target.namespace
        if given != target.namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace "
                "sent on the request"
            )
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)


def begin(obj: Obj, kind: Kind, stamp: str) -> None:
    """A new object's metadata."""
    metadata = obj["metadata"]
    if metadata.pop("resourceVersion", None):
        # Kubernetes calls this its own mistake, too.
        raise status.failure(500, "", "resourceVersion should not be set on objects to be created")
    for key in _SERVER_OWNED:
        metadata.pop(key, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"])
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = stamp
    if kind.has_generation:
        metadata["generation"] = 1
    # Kubelets register a node with its status; for all else status is the controllers' word.
    if kind.has_status and kind.kind != "Node":
        obj.pop("status", None)


def carry_over(new: Obj, old: Obj, kind: Kind, subresource: str) -> None:
    """Copies from the old object what neither clients nor this subresource may change."""
    metadata, before = new.setdefault("metadata", {}), old["metadata"]
    _check_identity(metadata, before, kind)
    uid = metadata.get("uid")
    for key in ("name", "namespace", "generateName", *_SERVER_OWNED):
        _take(metadata, before, key)
    if uid:
        metadata["uid"] = uid  # another object's: validation will say so
    if subresource == "status":
        _only_status(new, old, kind)
    elif subresource == "approval":
        _only_conditions(new, old)
    elif kind.has_status:
        _take(new, old, "status")


def count_generation(new: Obj, old: Obj, kind: Kind) -> None:
    """Increments metadata.generation if the desired state has changed. Called after admission."""
    if kind.has_generation and (_spec_changed(new, old) or _instructed_anew(new, old, kind)):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


# Where etcd keeps the objects of a real server, if not under their plural: error texts name it.
_STORED_AS = {
    "nodes": "minions",
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "ingresses.networking.k8s.io": "ingress",
    "customresourcedefinitions.apiextensions.k8s.io": (
        "apiextensions.k8s.io/customresourcedefinitions"
    ),
}


def failed_precondition(kind: Kind, before: Obj, what: str, given: str) -> ApiError:
    """`what`: UID or ResourceVersion. The text is the one of Kubernetes' storage layer."""
    found = before["uid"] if what == "UID" else before["resourceVersion"]
    plural = f"{kind.group}/{kind.plural}" if kind.custom else kind.plural
    key = [_STORED_AS.get(kind.resource, plural), before.get("namespace", ""), before["name"]]
    text = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{'/'.join(filter(None, key))}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: "
        f"{given}, {what} in object meta: {found}"
    )
    return status.conflict(kind, before["name"], text)


def _check_identity(metadata: Obj, before: Obj, kind: Kind) -> None:
    name = before["name"]
    given = metadata.get("name") or name
    if given != name:
        raise status.bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )
    namespace = before.get("namespace", "")
    if (metadata.get("namespace") or namespace) != namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    version = metadata.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        raise status.conflict(kind, name, MODIFIED)


# What of the metadata stays as it is when a status is written. Of all other kinds, controllers may
# label, annotate and finalize through it.
_STATUS_ALONE = ("labels", "annotations", "finalizers", "ownerReferences")
_KEPT_BY_STATUS: dict[str, tuple[str, ...]] = {
    "pods": ("ownerReferences",),  # old kubelets damaged them
    "apiservices.apiregistration.k8s.io": _STATUS_ALONE,
    "deployments.apps": ("labels",),
    "flowschemas.flowcontrol.apiserver.k8s.io": _STATUS_ALONE,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _STATUS_ALONE,
    "resourceclaims.resource.k8s.io": _STATUS_ALONE,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _STATUS_ALONE,
    "volumeattachments.storage.k8s.io": _STATUS_ALONE,
}


def _only_status(new: Obj, old: Obj, kind: Kind) -> None:
    fresh = new.get("status")
    for key in _STATUS_ALONE if kind.custom else _KEPT_BY_STATUS.get(kind.resource, ()):
        _take(new["metadata"], old["metadata"], key)
    for key in [key for key in new if key not in old and key != "status"]:
        del new[key]
    for key, value in old.items():
        if key not in ("metadata", "status"):
            new[key] = value
    if fresh is None:
        new.pop("status", None)


def _only_conditions(new: Obj, old: Obj) -> None:
    """Of a signing request's status: its approval changes nothing else."""
    conditions = (new.get("status") or {}).get("conditions")
    new["spec"], new["status"] = old["spec"], dict(old.get("status") or {})
    new["status"].pop("conditions", None)
    if conditions:
        new["status"]["conditions"] = conditions


def _take(new: Obj, old: Obj, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def _instructed_anew(new: Obj, old: Obj, kind: Kind) -> bool:
    """Whether annotations of a Deployment changed, which its controller copies to ReplicaSets."""
    if kind.resource != "deployments.apps":
        return False
    return (new["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {})


def _spec_changed(new: Obj, old: Obj) -> bool:
    """Whether anything outside metadata and status differs."""
    ignored = ("metadata", "status", "apiVersion", "kind")
    keys = {*new, *old}.difference(ignored)
    return any(new.get(key) != old.get(key) for key in keys)
