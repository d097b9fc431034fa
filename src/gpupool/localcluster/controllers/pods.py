"""What controllers of pods share: pods from a template, and what state a pod is in. Pure."""

import datetime
import json
import zlib

from gpupool.contract.objects import Obj
from gpupool.kube.resources import Resource

_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words


def controller_reference(owner: Obj, resource: Resource) -> Obj:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(owner: Obj, resource: Resource, template: Obj) -> Obj:
    """A pod without a name yet; the caller gives `name` or `generateName`."""
    given = template.get("metadata") or {}
    metadata: Obj = {
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [controller_reference(owner, resource)],
    }
    for key in ("labels", "annotations", "finalizers"):
        if given.get(key):
            metadata[key] = given[key]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def template_hash(template: Obj, collisions: int = 0) -> str:
    """A short name for a template's content: equal templates, equal names."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    number = zlib.crc32(f"{text}/{collisions}".encode())
    return "".join(_SAFE[int(digit) % len(_SAFE)] for digit in str(number))


def is_active(pod: Obj) -> bool:
    """Neither finished nor on its way out."""
    phase = pod.get("status", {}).get("phase")
    return phase not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def ready_since(pod: Obj) -> datetime.datetime | None:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            return parse_time(condition.get("lastTransitionTime"))
    return None


def is_ready(pod: Obj) -> bool:
    return ready_since(pod) is not None


def seconds_to_available(pod: Obj, min_ready_s: int, now: datetime.datetime) -> float | None:
    """0 when it is available now; None when it is not even ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return max(0.0, min_ready_s - (now - since).total_seconds()) if min_ready_s else 0.0


def parse_time(text: str | None) -> datetime.datetime:
    """RFC 3339; the beginning of time when there is none."""
    if not text:
        return datetime.datetime.fromtimestamp(0, datetime.UTC)
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def deletion_rank(pod: Obj) -> tuple[bool, int, bool, int, float, float]:
    """Sorts the pods that a smaller set misses least to the front, as Kubernetes ranks them:
    not placed, not running, not ready, cheap by annotation, ready or made most recently."""
    status = pod.get("status", {})
    phase = {"Pending": 0, "Unknown": 1, "Running": 2}.get(status.get("phase", ""), 0)
    cost = (pod["metadata"].get("annotations") or {}).get(
        "controller.kubernetes.io/pod-deletion-cost", "0"
    )
    since = ready_since(pod)
    created = parse_time(pod["metadata"].get("creationTimestamp"))
    return (
        bool(pod["spec"].get("nodeName")),
        phase,
        since is not None,
        int(cost) if cost.lstrip("-").isdigit() else 0,
        -(since.timestamp() if since else 0.0),
        -created.timestamp(),
    )
