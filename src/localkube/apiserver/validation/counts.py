"""Counters in the status of workloads: none negative, none greater than what it is part of."""

from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import Errors, invalid, not_negative
from localkube.apiserver.validation.metadata import own_meta_update


@dataclass(frozen=True, slots=True)
class Counters:
    names: tuple[str, ...]
    parts: tuple[str, ...] = ()  # at most status.replicas
    ready: str = ""  # how the error text names readyReplicas


DEPLOYMENT = Counters(
    names=(
        *("observedGeneration", "replicas", "updatedReplicas", "readyReplicas"),
        *("availableReplicas", "unavailableReplicas", "terminatingReplicas", "collisionCount"),
    ),
    parts=("updatedReplicas", "readyReplicas", "availableReplicas"),
    ready="readyReplicas",
)
REPLICA_SET = Counters(
    names=(
        *("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
        *("observedGeneration", "terminatingReplicas"),
    ),
    parts=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    ready="readyReplicas",
)
STATEFUL_SET = Counters(
    names=(
        *("replicas", "readyReplicas", "currentReplicas", "updatedReplicas"),
        *("availableReplicas", "observedGeneration", "collisionCount"),
    ),
    parts=("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    ready="status.readyReplicas",
)
DAEMON_SET = Counters(
    names=(
        *("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled"),
        *("numberReady", "observedGeneration", "updatedNumberScheduled", "numberAvailable"),
        *("numberUnavailable", "collisionCount"),
    ),
)


def status_update(new: Obj, old: Obj, counters: Counters) -> Errors:
    errors: Errors = []
    if counters is not STATEFUL_SET:
        own_meta_update(errors, new["metadata"], old["metadata"])
    status = new.get("status", {})
    _counters(errors, status, counters)
    if counters is STATEFUL_SET:
        own_meta_update(errors, new["metadata"], old["metadata"])
    if "collisionCount" in counters.names:
        now, before = (one.get("collisionCount") for one in (status, old.get("status", {})))
        if before is not None and (now or 0) < before:
            errors.append(invalid("status.collisionCount", now or 0, "cannot be decremented"))
    return errors


def _counters(errors: Errors, status: Obj, counters: Counters) -> None:
    for name in counters.names:
        not_negative(errors, status.get(name, 0), f"status.{name}")
    for name in counters.parts:
        if status.get(name, 0) > status.get("replicas", 0):
            what = "cannot be greater than status.replicas"
            errors.append(invalid(f"status.{name}", status.get(name, 0), what))
    available = status.get("availableReplicas", 0)
    if counters.ready and available > status.get("readyReplicas", 0):
        what = f"cannot be greater than {counters.ready}"
        errors.append(invalid("status.availableReplicas", available, what))
