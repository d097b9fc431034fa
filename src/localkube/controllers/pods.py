"""What controllers of pods share: pods from a template, and what state a pod is in. Pure."""

import datetime
import hashlib
import math

import msgspec
import orjson

from kubeclient import times
from kubeclient.bounded_numbers import bounded_number, first_digits
from kubeclient.objects import Obj
from kubeclient.resources import Resource

_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' alphabet: no vowels, so no words
_LARGE = 1 << 14  # bytes
_FNV_START, _FNV_PRIME = 0x811C9DC5, 0x01000193


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
    """A pod with generateName: the API server names it, unless the caller does."""
    given = template.get("metadata") or {}
    metadata: Obj = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [controller_reference(owner, resource)],
    }
    for key, empty in (("labels", {}), ("annotations", {}), ("finalizers", [])):
        if given.get(key):
            metadata[key] = type(empty)(given[key])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _text(content: Obj) -> str:
    raw = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    # FNV goes byte by byte, and would hold the event loop for a tenth of a second.
    return hashlib.sha256(raw).hexdigest() if len(raw) > _LARGE else raw.decode()


def content_hash(content: Obj, collisions: int = 0) -> str:
    """A short hash (FNV-1) in the alphabet of Kubernetes: equal content gives equal names.
    `collisions` changes the hash if a name is taken by other content."""
    text = _text(content)
    number = _FNV_START
    for byte in f"{text}{collisions}".encode():
        number = (number * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(number))


def count_of(value: int | str, total: int, *, round_up: bool) -> int:
    """A number, or a percentage of `total`: the values of maxSurge, maxUnavailable and the like."""
    if isinstance(value, int):
        return value
    hundredths = first_digits(value.rstrip("%")) * total
    return -(-hundredths // 100) if round_up else hundredths // 100


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference of the object's controller."""
    owners: list[Obj] = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def is_active(pod: Obj) -> bool:
    """Neither finished nor terminating."""
    return not is_finished(pod) and not is_terminating(pod)


def is_finished(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_terminating(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def whole_number(text: str) -> int | None:
    """Of 32 bits, and not negative. Anybody may write annotations, of any length."""
    found = bounded_number(text, 10)
    return found if found is not None and found < 2**31 else None


def label(obj: Obj, name: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(name, ""))


def annotation(obj: Obj, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def ready_since(pod: Obj) -> datetime.datetime | None:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            return parse_time(condition.get("lastTransitionTime"))
    return None


def is_ready(pod: Obj) -> bool:
    return ready_since(pod) is not None


def ready_since_s(pod: Obj) -> float | None:
    since = ready_since(pod)
    return None if since is None else since.timestamp()


def seconds_to_available(
    ready_since_s: float | None, min_ready_s: int, now_s: float
) -> float | None:
    """0 when the pod is available now; None when it is not even ready."""
    if ready_since_s is None:
        return None
    return max(0.0, ready_since_s + min_ready_s - now_s) if min_ready_s else 0.0


def parse_time(text: str | None) -> datetime.datetime:
    """The epoch if there is no text, or it is no time. Years can be added to it, whatever it is."""
    return times.moment_of(text)


def stamp(time: datetime.datetime) -> str:
    return times.stamp(time.timestamp())


class Standing(msgspec.Struct, frozen=True, gc=False):
    """What decides which pods are deleted first when a set shrinks."""

    uid: str
    placed: bool
    phase: int  # Pending 0, Unknown 1, Running 2
    ready_since_s: float | None
    cost: int
    restarts: int
    created_s: float


def standing_of(pod: Obj) -> Standing:
    status, metadata = pod.get("status", {}), pod["metadata"]
    restarts = [c.get("restartCount", 0) for c in status.get("containerStatuses") or ()]
    return Standing(
        uid=metadata["uid"],
        placed=bool(pod["spec"].get("nodeName")),
        phase={"Pending": 0, "Unknown": 1, "Running": 2}.get(status.get("phase", ""), 0),
        ready_since_s=ready_since_s(pod),
        cost=_deletion_cost(pod),
        restarts=max(restarts, default=0),
        created_s=parse_time(metadata.get("creationTimestamp")).timestamp(),
    )


Rank = tuple[bool, int, bool, int, int, int, int, int, str]


def deletion_rank(standing: Standing, neighbours: int, now_s: float) -> Rank:
    """A sort key: the pods to delete first come first, in the order of Kubernetes. Pods that are
    not scheduled, not running or not ready; with a low deletion cost (an annotation); with many
    pods of the same owner on their node (`neighbours`); ready for a shorter time; restarted more
    often; younger. Times count by their order of magnitude only: pods of about the same age are
    equal, and the uid decides, so that not always the youngest goes."""
    since_s = standing.ready_since_s
    return (
        standing.placed,
        standing.phase,
        since_s is not None,
        standing.cost,
        -neighbours,
        0 if since_s is None else _magnitude(now_s - since_s),
        -standing.restarts,
        _magnitude(now_s - standing.created_s),
        standing.uid,
    )


def _deletion_cost(pod: Obj) -> int:
    text = annotation(pod, "controller.kubernetes.io/pod-deletion-cost")
    cost = whole_number(text.removeprefix("-").removeprefix("+")) or 0
    return -cost if text.startswith("-") else cost


def _magnitude(seconds: float) -> int:
    return math.floor(math.log2(seconds)) if seconds >= 1 else -1
