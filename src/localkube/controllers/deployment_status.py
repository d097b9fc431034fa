"""A deployment's status and conditions, as kubectl rollout status reads them. Pure."""

import datetime
from collections.abc import Sequence

from kubeclient.objects import Obj
from localkube.controllers.deployment_sets import Bounds
from localkube.controllers.pods import parse_time, stamp

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
NO_DEADLINE = 2**31 - 1
_DONE, _TIMED_OUT = "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"


def has_deadline(deployment: Obj) -> bool:
    return bool(deployment["spec"].get("progressDeadlineSeconds", NO_DEADLINE) != NO_DEADLINE)


def counts(deployment: Obj, new: Obj | None, sets: Sequence[Obj]) -> Obj:
    def total(field: str) -> int:
        return sum(each.get("status", {}).get(field, 0) for each in sets)

    available = total("availableReplicas")
    found = {
        "replicas": total("replicas"),
        "updatedReplicas": (new or {}).get("status", {}).get("replicas", 0),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(rs["spec"]["replicas"] for rs in sets) - available),
    }
    status = {name: count for name, count in found.items() if count}
    status["terminatingReplicas"] = total("terminatingReplicas")
    status["observedGeneration"] = deployment["metadata"].get("generation", 0)
    collisions = deployment.get("status", {}).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    return status


def is_complete(deployment: Obj, status: Obj) -> bool:
    replicas = deployment["spec"]["replicas"]
    found = ("updatedReplicas", "replicas", "availableReplicas")
    generation = deployment["metadata"].get("generation", 0)
    return bool(
        all(status.get(count, 0) == replicas for count in found)
        and status.get("observedGeneration", 0) >= generation
    )


def _moved(before: Obj, status: Obj) -> bool:
    """Whether the rollout has made progress since the last status."""

    def old_replicas(s: Obj) -> int:
        return int(s.get("replicas", 0) - s.get("updatedReplicas", 0))

    return (
        status.get("updatedReplicas", 0) > before.get("updatedReplicas", 0)
        or old_replicas(status) < old_replicas(before)
        or status.get("readyReplicas", 0) > before.get("readyReplicas", 0)
        or status.get("availableReplicas", 0) > before.get("availableReplicas", 0)
    )


class Conditions:
    """Conditions by type. A condition keeps its times while it does not change; otherwise every
    reconcile would write a new status, and the write would cause the next reconcile."""

    def __init__(self, deployment: Obj, now: datetime.datetime) -> None:
        known = deployment.get("status", {}).get("conditions") or ()
        self._found: dict[str, Obj] = {condition["type"]: condition for condition in known}
        self._stamp = stamp(now)

    def get(self, kind: str) -> Obj | None:
        return self._found.get(kind)

    def reason(self, kind: str) -> str:
        return str((self._found.get(kind) or {}).get("reason", ""))

    def drop(self, kind: str) -> None:
        self._found.pop(kind, None)

    def put(self, kind: str, status: str, reason: str, message: str, *, news: bool = False) -> None:
        """`news`: set a new lastUpdateTime even if status and reason are the same."""
        known = self._found.get(kind)
        if known and not news and (known["status"], known.get("reason")) == (status, reason):
            return
        kept = known.get("lastTransitionTime") if known and known["status"] == status else None
        self._found[kind] = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastUpdateTime": self._stamp,
            "lastTransitionTime": kept or self._stamp,
        }

    def listed(self) -> list[Obj]:
        order = (AVAILABLE, PROGRESSING, FAILURE)
        rest = [kind for kind in self._found if kind not in order]
        return [self._found[kind] for kind in (*order, *rest) if kind in self._found]


def note_pause(conditions: Conditions, deployment: Obj) -> None:
    """The progress deadline does not run while a Deployment is paused, and starts again when it is
    resumed."""
    reason = conditions.reason(PROGRESSING)
    if not has_deadline(deployment) or reason == _TIMED_OUT:
        return
    if deployment["spec"].get("paused"):
        conditions.put(PROGRESSING, "Unknown", _PAUSED, "Deployment is paused")
    elif reason == _PAUSED:
        conditions.put(PROGRESSING, "Unknown", _RESUMED, "Deployment is resumed")


def note_available(conditions: Conditions, status: Obj, limits: Bounds) -> None:
    if status.get("availableReplicas", 0) >= limits.least:
        text = "Deployment has minimum availability."
        conditions.put(AVAILABLE, "True", "MinimumReplicasAvailable", text)
    else:
        text = "Deployment does not have minimum availability."
        conditions.put(AVAILABLE, "False", "MinimumReplicasUnavailable", text)


def note_progress(
    conditions: Conditions,
    deployment: Obj,
    status: Obj,
    new: Obj | None,
    now: datetime.datetime,
) -> None:
    """Sets the condition Progressing during a rollout."""
    if not has_deadline(deployment):
        conditions.drop(PROGRESSING)
        return
    over = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if over and conditions.reason(PROGRESSING) == _DONE:
        return  # nothing is being rolled out
    name = deployment["metadata"]["name"]
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{name}"'
    if is_complete(deployment, status):
        text = f"{subject} has successfully progressed."
        conditions.put(PROGRESSING, "True", _DONE, text)
    elif _moved(deployment.get("status", {}), status):
        text = f"{subject} is progressing."
        conditions.put(PROGRESSING, "True", "ReplicaSetUpdated", text, news=True)
    elif _has_timed_out(conditions, deployment, now):
        text = f"{subject} has timed out progressing."
        conditions.put(PROGRESSING, "False", _TIMED_OUT, text)


def note_failures(conditions: Conditions, new: Obj | None, sets: Sequence[Obj]) -> None:
    """Copies the condition ReplicaFailure of a replica set, of the new one first."""
    for each in [new, *sets]:
        for condition in (each or {}).get("status", {}).get("conditions") or ():
            if condition["type"] == FAILURE:
                reason, message = condition.get("reason", ""), condition.get("message", "")
                conditions.put(FAILURE, condition["status"], reason, message)
                return
    conditions.drop(FAILURE)


def _has_timed_out(conditions: Conditions, deployment: Obj, now: datetime.datetime) -> bool:
    current = conditions.get(PROGRESSING)
    if current is None or current.get("reason") == _DONE:
        return False
    return current.get("reason") == _TIMED_OUT or _seconds_left(current, deployment, now) <= 0


def _seconds_left(condition: Obj, deployment: Obj, now: datetime.datetime) -> float:
    since = parse_time(condition.get("lastUpdateTime"))
    deadline_s: int = deployment["spec"]["progressDeadlineSeconds"]
    return deadline_s - (now - since).total_seconds()


def seconds_to_deadline(deployment: Obj, status: Obj, now: datetime.datetime) -> float | None:
    """Seconds until the progress deadline has to be checked. None: there is nothing to check."""
    if not has_deadline(deployment) or is_complete(deployment, status):
        return None
    for condition in status.get("conditions") or ():
        if condition["type"] == PROGRESSING:
            if condition.get("reason") in (_DONE, _TIMED_OUT, _PAUSED):
                return None
            return max(0.1, _seconds_left(condition, deployment, now))
    return None
