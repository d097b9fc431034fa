"""The status of a ReplicaSet or ReplicationController. Pure."""

import datetime
from collections.abc import Sequence

from kubeclient.errors import KubeError
from kubeclient.objects import Obj
from localkube.controllers.pods import stamp
from localkube.controllers.replica_facts import Fact

FAILURE = "ReplicaFailure"


def status_of(
    owner: Obj,
    active: Sequence[Fact],
    terminating: int | None,
    failure: KubeError | None,
    now: datetime.datetime,
) -> Obj:
    """`terminating`: None where the kind does not tell."""
    spec, now_s = owner["spec"], now.timestamp()
    min_ready_s = spec.get("minReadySeconds", 0)
    wanted = (spec["template"].get("metadata") or {}).get("labels") or {}
    counts = {
        "fullyLabeledReplicas": sum(wanted.items() <= fact.labels.items() for fact in active),
        "readyReplicas": sum(fact.ready for fact in active),
        "availableReplicas": sum(
            fact.seconds_to_available(min_ready_s, now_s) == 0 for fact in active
        ),
    }
    status: Obj = {"replicas": len(active), **{k: count for k, count in counts.items() if count}}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    generation = owner["metadata"].get("generation", 0)
    if generation:
        status["observedGeneration"] = generation
    conditions = _conditions(owner, len(active), failure, now)
    if conditions:
        status["conditions"] = conditions
    return status


def _conditions(
    owner: Obj, active: int, failure: KubeError | None, now: datetime.datetime
) -> list[Obj]:
    """A failure stays in the words in which it was first met, until it is over."""
    known: list[Obj] = owner.get("status", {}).get("conditions") or []
    if failure is None:
        return [condition for condition in known if condition["type"] != FAILURE]
    if any(condition["type"] == FAILURE for condition in known):
        return known
    too_few = active < owner["spec"].get("replicas", 1)
    new = {
        "type": FAILURE,
        "status": "True",
        "reason": "FailedCreate" if too_few else "FailedDelete",
        "message": str(failure),
        "lastTransitionTime": stamp(now),
    }
    return [*known, new]
