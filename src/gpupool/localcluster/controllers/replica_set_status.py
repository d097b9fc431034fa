"""The status of a ReplicaSet or ReplicationController. Pure."""

import datetime
from collections.abc import Sequence

from gpupool.contract.objects import Obj
from gpupool.kube.errors import KubeError
from gpupool.localcluster.controllers.pods import seconds_to_available, stamp

FAILURE = "ReplicaFailure"


def status_of(
    owner: Obj,
    active: Sequence[Obj],
    terminating: int | None,
    failure: KubeError | None,
    now: datetime.datetime,
) -> Obj:
    """`terminating`: None where the kind does not tell."""
    spec = owner["spec"]
    waits = [seconds_to_available(p, spec.get("minReadySeconds", 0), now) for p in active]
    wanted = (spec["template"].get("metadata") or {}).get("labels") or {}
    counts = {
        "fullyLabeledReplicas": sum(_has_labels(pod, wanted) for pod in active),
        "readyReplicas": sum(wait is not None for wait in waits),
        "availableReplicas": sum(wait == 0 for wait in waits),
    }
    status: Obj = {"replicas": len(active), **{k: count for k, count in counts.items() if count}}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    generation = owner["metadata"].get("generation", 0)
    if generation:
        status["observedGeneration"] = generation
    conditions = _conditions(owner, active, failure, now)
    if conditions:
        status["conditions"] = conditions
    return status


def _has_labels(pod: Obj, wanted: Obj) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _conditions(
    owner: Obj, active: Sequence[Obj], failure: KubeError | None, now: datetime.datetime
) -> list[Obj]:
    """A failure stays in the words in which it was first met, until it is over."""
    known: list[Obj] = owner.get("status", {}).get("conditions") or []
    if failure is None:
        return [condition for condition in known if condition["type"] != FAILURE]
    if any(condition["type"] == FAILURE for condition in known):
        return known
    too_few = len(active) < owner["spec"].get("replicas", 1)
    new = {
        "type": FAILURE,
        "status": "True",
        "reason": "FailedCreate" if too_few else "FailedDelete",
        "message": str(failure),
        "lastTransitionTime": stamp(now),
    }
    return [*known, new]
