"""A deployment's status and conditions, as kubectl rollout status reads them. Pure."""

import datetime
from collections.abc import Sequence

from gpupool.contract.objects import Obj
from gpupool.localcluster.controllers.pods import parse_time

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
NO_DEADLINE = 2**31 - 1


def counts(deployment: Obj, new: Obj | None, sets: Sequence[Obj]) -> Obj:
    def total(field: str) -> int:
        return sum(rs.get("status", {}).get(field, 0) for rs in sets)

    available = total("availableReplicas")
    found = {
        "replicas": total("replicas"),
        "updatedReplicas": (new or {}).get("status", {}).get("replicas", 0),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "terminatingReplicas": 0,
        "unavailableReplicas": max(0, sum(rs["spec"]["replicas"] for rs in sets) - available),
    }
    status: Obj = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    status |= {name: count for name, count in found.items() if count}
    if deployment.get("status", {}).get("collisionCount"):
        status["collisionCount"] = deployment["status"]["collisionCount"]
    return status


def is_complete(deployment: Obj, status: Obj) -> bool:
    replicas = deployment["spec"]["replicas"]
    return bool(
        status.get("updatedReplicas", 0) == replicas
        and status.get("replicas", 0) == replicas
        and status.get("availableReplicas", 0) == replicas
        and status["observedGeneration"] >= deployment["metadata"].get("generation", 0)
    )


def _moved(before: Obj, status: Obj) -> bool:
    """Whether the rollout got any further since the last look."""

    def old_replicas(s: Obj) -> int:
        return int(s.get("replicas", 0) - s.get("updatedReplicas", 0))

    return (
        status.get("updatedReplicas", 0) > before.get("updatedReplicas", 0)
        or old_replicas(status) < old_replicas(before)
        or status.get("readyReplicas", 0) > before.get("readyReplicas", 0)
        or status.get("availableReplicas", 0) > before.get("availableReplicas", 0)
    )


def conditions(
    deployment: Obj, status: Obj, new: Obj | None, now: datetime.datetime, least: int
) -> list[Obj]:
    """`least`: how many pods must be available for the whole to count as available."""
    known = {c["type"]: c for c in deployment.get("status", {}).get("conditions") or ()}
    wanted = [_available(status, least)]
    progress = _progress(deployment, status, new, known, now)
    if progress is not None:
        wanted.append(progress)
    failure = _failure(new)
    if failure is not None:
        wanted.append(failure)
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [_dated(condition, known.get(condition["type"]), stamp) for condition in wanted]


def _available(status: Obj, least: int) -> Obj:
    if status.get("availableReplicas", 0) >= least:
        return {
            "type": AVAILABLE,
            "status": "True",
            "reason": "MinimumReplicasAvailable",
            "message": "Deployment has minimum availability.",
        }
    return {
        "type": AVAILABLE,
        "status": "False",
        "reason": "MinimumReplicasUnavailable",
        "message": "Deployment does not have minimum availability.",
    }


def _progress(
    deployment: Obj, status: Obj, new: Obj | None, known: dict[str, Obj], now: datetime.datetime
) -> Obj | None:
    if deployment["spec"].get("progressDeadlineSeconds", NO_DEADLINE) == NO_DEADLINE:
        return None
    name = deployment["metadata"]["name"]
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{name}"'
    current = known.get(PROGRESSING)
    if deployment["spec"].get("paused"):
        return _progressing("Unknown", "DeploymentPaused", "Deployment is paused")
    if current is not None and current.get("reason") == "DeploymentPaused":
        return _progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
    if is_complete(deployment, status):
        text = f"{subject} has successfully progressed."
        return _progressing("True", "NewReplicaSetAvailable", text)
    if current is None:
        text = f'Created new replica set "{new["metadata"]["name"]}"' if new else ""
        return _progressing("True", "NewReplicaSetCreated", text) if new else None
    if _moved(deployment.get("status", {}), status):
        return _progressing("True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
    if seconds_to_deadline(deployment, now) == 0:
        text = f"{subject} has timed out progressing."
        return _progressing("False", "ProgressDeadlineExceeded", text)
    if current["reason"] == "NewReplicaSetAvailable":  # a new rollout begins
        return _progressing("True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
    return {k: v for k, v in current.items() if k != "lastTransitionTime"}


def _progressing(
    status: str, reason: str, message: str, now: datetime.datetime | None = None
) -> Obj:
    condition: Obj = {
        "type": PROGRESSING,
        "status": status,
        "reason": reason,
        "message": message,
    }
    if now is not None:  # this is news, even in the same words
        condition["lastUpdateTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return condition


def seconds_to_deadline(deployment: Obj, now: datetime.datetime) -> float | None:
    """0: the rollout has stood still for too long. None: nothing is awaited."""
    deadline_s: int = deployment["spec"].get("progressDeadlineSeconds", NO_DEADLINE)
    if deadline_s == NO_DEADLINE or deployment["spec"].get("paused"):
        return None
    for condition in deployment.get("status", {}).get("conditions") or ():
        if condition["type"] == PROGRESSING:
            if condition["reason"] == "NewReplicaSetAvailable":
                return None
            since = parse_time(condition.get("lastUpdateTime"))
            return max(0.0, deadline_s - (now - since).total_seconds())
    return None


def _failure(new: Obj | None) -> Obj | None:
    for condition in (new or {}).get("status", {}).get("conditions") or ():
        if condition["type"] == FAILURE:
            return {key: condition[key] for key in ("type", "status", "reason", "message")}
    return None


def _dated(condition: Obj, known: Obj | None, stamp: str) -> Obj:
    """Times move only when what they date moves, so that a quiet deployment stays quiet."""
    same_words = known is not None and all(
        known.get(k) == condition.get(k) for k in ("status", "reason", "message")
    )
    updated = condition.get("lastUpdateTime")
    if updated is None:
        updated = known["lastUpdateTime"] if known is not None and same_words else stamp
    moved = known is None or known["status"] != condition["status"]
    transition = stamp if moved or known is None else known["lastTransitionTime"]
    return {**condition, "lastUpdateTime": updated, "lastTransitionTime": transition}
