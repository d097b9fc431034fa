"""What a StatefulSet does next, and its status: which ordinals to create, delete or repair. Pure.

An ordered set takes one step at a time: no pod is created, scaled away or updated while a pod with
a lower ordinal is not available. A parallel set does everything at once except updates, which are
limited in both cases. No plan takes longer for a set that wants thousands of millions of replicas:
it goes through the pods that exist, and through the first ordinals without one.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kubeclient.objects import Obj


@dataclass(frozen=True, slots=True)
class Replica:
    """A pod as the plan sees it."""

    ordinal: int
    revision: str
    phase: str
    ready: bool = False
    available: bool = False
    terminating: bool = False
    in_order: bool = True  # labels, volumes and claims are correct

    @property
    def running_and_ready(self) -> bool:
        return self.phase == "Running" and self.ready

    @property
    def unavailable(self) -> bool:
        return not self.available or self.terminating


BURST = 500  # pods that one plan creates or deletes, as with other workloads


@dataclass(frozen=True, slots=True)
class Goal:
    """The part of the spec that the plan needs."""

    replicas: int
    update_revision: str
    start: int = 0
    parallel: bool = False
    rolling: bool = True  # not OnDelete
    partition: int = 0
    max_unavailable: int | None = None  # None: not given
    # Whether claims of the ordinal still belong to an earlier pod.
    is_stale: Callable[[int], bool] = lambda _: False

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)


@dataclass(slots=True)
class Plan:
    create: list[int] = field(default_factory=list)
    delete: list[int] = field(default_factory=list)
    update: list[int] = field(default_factory=list)  # to delete, so that they come back updated
    claim: list[int] = field(
        default_factory=list
    )  # pending pods: create their claims if they are missing
    repair: list[int] = field(default_factory=list)
    waits_for_claims: bool = False  # to be deleted: no watch tells when they are


def plan(goal: Goal, replicas: Mapping[int, Replica]) -> Plan:
    todo = Plan()
    condemned = sorted((o for o in replicas if o not in goal.ordinals), reverse=True)
    if not _tend(goal, replicas, todo):
        return todo
    if condemned and not _shrink(goal, replicas, condemned, todo):
        return todo
    if goal.rolling:
        _update(goal, replicas, todo)
    return todo


def _tend(goal: Goal, replicas: Mapping[int, Replica], todo: Plan) -> bool:
    """One pod for every ordinal. False: an ordered set has to wait for one of them."""
    absent = (ordinal for ordinal in goal.ordinals if ordinal not in replicas)
    present = (ordinal for ordinal in replicas if ordinal in goal.ordinals)
    for ordinal in sorted([*present, *itertools.islice(absent, BURST)]):
        settled = _tend_one(ordinal, goal, replicas.get(ordinal), todo)
        if not settled and not goal.parallel:
            return False
    return True


def _tend_one(ordinal: int, goal: Goal, replica: Replica | None, todo: Plan) -> bool:
    if replica is None:
        if goal.is_stale(ordinal):
            todo.waits_for_claims = True
        else:
            todo.create.append(ordinal)
        return False
    if replica.phase in ("Failed", "Succeeded"):
        if not replica.terminating:
            todo.delete.append(ordinal)
        return False
    if replica.phase == "Pending":
        todo.claim.append(ordinal)
    settled = replica.running_and_ready and not replica.unavailable
    if (settled or goal.parallel) and not replica.in_order:
        todo.repair.append(ordinal)
    return settled


def _shrink(goal: Goal, replicas: Mapping[int, Replica], condemned: list[int], todo: Plan) -> bool:
    """Deletes from the highest ordinal down. False: no updates yet, an ordered set shrinks
    first."""
    todo.repair += [o for o in condemned if not replicas[o].in_order]
    if goal.parallel:
        todo.delete += [o for o in condemned if not replicas[o].terminating][:BURST]
        return True
    first = _first_unavailable(goal, replicas)
    highest = replicas[condemned[0]]
    healthy = highest.running_and_ready and highest.available
    if not highest.terminating and (healthy or highest.ordinal == first):
        todo.delete.append(highest.ordinal)
    return False


def _first_unavailable(goal: Goal, replicas: Mapping[int, Replica]) -> int | None:
    """The lowest ordinal without an available pod; ordinals beyond the set come last."""
    beyond = sorted(o for o in replicas if o not in goal.ordinals)
    every = itertools.chain(goal.ordinals, beyond)
    return next((o for o in every if o not in replicas or replicas[o].unavailable), None)


def _update(goal: Goal, replicas: Mapping[int, Replica], todo: Plan) -> None:
    """Deletes pods of old revisions, from the highest ordinal down to the partition."""
    down = range(goal.start + goal.replicas - 1, goal.start + goal.partition - 1, -1)
    if goal.max_unavailable is None:
        _update_one(goal, replicas, down, todo)
        return
    available = sum(o in goal.ordinals and not r.unavailable for o, r in replicas.items())
    allowed = goal.max_unavailable - (goal.replicas - available)
    deleted = set(todo.delete)
    for ordinal in sorted((o for o in replicas if o in down), reverse=True):
        if len(todo.update) >= min(allowed, BURST):
            return
        if ordinal not in deleted and _is_old(goal, replicas[ordinal]):
            todo.update.append(ordinal)


def _update_one(goal: Goal, replicas: Mapping[int, Replica], down: range, todo: Plan) -> None:
    for ordinal in down:
        replica = replicas.get(ordinal)
        if ordinal not in todo.delete and _is_old(goal, replica):
            todo.update.append(ordinal)
            return
        if replica is None or replica.unavailable:
            return


def _is_old(goal: Goal, replica: Replica | None) -> bool:
    return (
        replica is not None and replica.revision != goal.update_revision and not replica.terminating
    )


def status_of(
    stateful_set: Obj, replicas: Iterable[Replica], current: str, update: str, collisions: int
) -> Obj:
    found = list(replicas)
    staying = [replica for replica in found if not replica.terminating]
    counts = {
        "readyReplicas": sum(replica.running_and_ready for replica in found),
        "currentReplicas": sum(replica.revision == current for replica in staying),
        "updatedReplicas": sum(replica.revision == update for replica in staying),
    }
    status: Obj = {
        "observedGeneration": stateful_set["metadata"].get("generation", 0),
        "replicas": len(found),
        "availableReplicas": sum(r.running_and_ready and r.available for r in found),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
        **counts,
    }
    if _is_rolled_out(stateful_set, status):
        status["currentRevision"] = update
        status["currentReplicas"] = status["updatedReplicas"]
    conditions = stateful_set.get("status", {}).get("conditions")
    if conditions:
        status["conditions"] = conditions
    return {key: value for key, value in status.items() if value or key in _ALWAYS}


_ALWAYS = ("replicas", "availableReplicas", "collisionCount")


def _is_rolled_out(stateful_set: Obj, status: Mapping[str, object]) -> bool:
    spec = stateful_set["spec"]
    wanted = spec["replicas"]
    return spec["updateStrategy"]["type"] == "RollingUpdate" and all(
        status[count] == wanted for count in ("replicas", "readyReplicas", "updatedReplicas")
    )
