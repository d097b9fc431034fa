"""Scales idle workloads to zero, and back: the patches, or why not. Pure.

The number of replicas is noted in the same write that sets it to 0. So there is never a workload
without replicas whose number nobody knows. What cannot be restored is not touched.
"""

from dataclasses import dataclass

from gpupool.contract.names import ANNOTATION_IDLE_REPLICAS, ANNOTATION_IDLE_WARNED
from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS, STATEFUL_SETS

# By kind. Others have no replicas that come back the same.
RESOURCES = {resource.kind: resource for resource in (DEPLOYMENTS, STATEFUL_SETS)}
_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Change:
    patch: Obj  # with the resourceVersion: it fails if somebody else has written meanwhile
    replicas: int


@dataclass(frozen=True, slots=True)
class No:
    why: str


def to_zero(workload: Obj) -> Change | No:
    metadata, spec = workload["metadata"], workload.get("spec") or {}
    if any(owner.get("controller") for owner in metadata.get("ownerReferences") or ()):
        return No("another object controls it, and would undo the change")
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or replicas < 1:
        return No("it has no replicas")
    # If there is an older note, somebody has scaled it since: it is not needed any more.
    return Change(_patch(metadata, str(replicas), 0), replicas)


def restored(workload: Obj) -> Change | No:
    metadata, spec = workload["metadata"], workload.get("spec") or {}
    text = (metadata.get("annotations") or {}).get(ANNOTATION_IDLE_REPLICAS)
    if text is None:
        return No(f"it has no annotation {ANNOTATION_IDLE_REPLICAS}: it was not scaled to zero")
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) > 0
    if not is_number:
        return No(f'the annotation {ANNOTATION_IDLE_REPLICAS} is no number of replicas: "{text}"')
    # Somebody has scaled it since: that counts, and only the note goes.
    replicas = spec.get("replicas", 1) or int(text)
    return Change(_patch(metadata, None, replicas), replicas)


def _patch(metadata: Obj, note: str | None, replicas: int) -> Obj:
    return {
        "metadata": {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {ANNOTATION_IDLE_REPLICAS: note, ANNOTATION_IDLE_WARNED: None},
        },
        "spec": {"replicas": replicas},
    }
