"""What a DaemonSet does next, and its status: on which nodes to create a pod, which pods to delete.
Pure.

Every node that should run a daemon has one pod; while an update surges, a new one beside the old.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum

from kubeclient.objects import Obj


class Fit(Enum):
    """Whether a node may have a pod of the DaemonSet."""

    RUN = "run"  # should have a pod
    STAY = "stay"  # gets no pod, but may keep the one that it has
    GO = "go"  # has to lose its pod


@dataclass(frozen=True, slots=True)
class Daemon:
    """A pod as the plan sees it."""

    name: str
    updated: bool = True
    phase: str = "Running"
    ready: bool = True
    available: bool = True
    terminating: bool = False
    placed: bool = True
    created: str = ""

    @property
    def seniority(self) -> tuple[bool, str, str]:
        return not self.placed, self.created, self.name


Fits = Mapping[str, Fit]  # by node
Daemons = Mapping[str, Sequence[Daemon]]  # by node


@dataclass(slots=True)
class Plan:
    create: list[str] = field(default_factory=list)  # nodes
    delete: list[str] = field(default_factory=list)  # pods
    failed: list[tuple[str, str]] = field(default_factory=list)  # node and pod, deleted too
    succeeded: list[tuple[str, str]] = field(default_factory=list)


def tend(fits: Fits, daemons: Daemons, surges: bool, held: Set[str]) -> Plan:
    """One pod for every node that should have one. On the nodes in `held`, a failed pod stays until
    its backoff is over."""
    todo = Plan()
    for node, fit in fits.items():
        found = daemons.get(node)
        if fit is Fit.RUN and not found:
            todo.create.append(node)
        elif fit is Fit.GO:
            todo.delete += [d.name for d in found or () if not d.terminating]
        else:
            running = _running(node, found or (), node in held, todo)
            if surges:
                _tend_surging(node, fit, running, todo)
            else:
                todo.delete += [daemon.name for daemon in running[1:]]
    for node, found in daemons.items():
        if node not in fits:  # pods that wait for a node which is no longer there
            todo.delete += [d.name for d in found if not d.placed and not d.terminating]
    return todo


def _running(node: str, found: Sequence[Daemon], held: bool, todo: Plan) -> list[Daemon]:
    """The pods that have not ended, oldest first. Plans the deletion of the others."""
    running = []
    for daemon in sorted(found, key=lambda d: d.seniority):
        if daemon.terminating:
            continue
        if daemon.phase == "Failed":
            if not held:
                todo.failed.append((node, daemon.name))
                todo.delete.append(daemon.name)
        elif daemon.phase == "Succeeded":
            todo.succeeded.append((node, daemon.name))
            todo.delete.append(daemon.name)
        else:
            running.append(daemon)
    return running


def _tend_surging(node: str, fit: Fit, running: Sequence[Daemon], todo: Plan) -> None:
    """At most one old and one new pod. The old one goes when it is not ready or the new one is
    available."""
    if not running and fit is Fit.RUN:
        todo.create.append(node)
    if len(running) <= 1:
        return
    new = [daemon for daemon in running if daemon.updated]
    old = [daemon for daemon in running if not daemon.updated]
    todo.delete += [daemon.name for daemon in (*new[1:], *old[1:])]
    if new and old and (not old[0].ready or new[0].available):
        todo.delete.append(old[0].name)


def update(fits: Fits, daemons: Daemons, max_surge: int, max_unavailable: int) -> Plan:
    """Replaces old pods. `max_surge` and `max_unavailable` are numbers of pods."""
    every = dict.fromkeys((*daemons, *(node for node, fit in fits.items() if fit is Fit.RUN)))
    pairs = {node: _pair(daemons.get(node, ())) for node in every}
    if max_surge:
        return _surge(fits, pairs, max_surge)
    return _replace(pairs, max_unavailable or 1)


@dataclass(frozen=True, slots=True)
class _Pair:
    new: Daemon | None
    old: Daemon | None


def _pair(found: Sequence[Daemon]) -> _Pair | None:
    """None: the node has too many pods, and `tend` deletes some first."""
    new = [daemon for daemon in found if daemon.updated and not daemon.terminating]
    old = [daemon for daemon in found if not daemon.updated and not daemon.terminating]
    if len(new) > 1 or len(old) > 1:
        return None
    return _Pair(new[0] if new else None, old[0] if old else None)


Pairs = Mapping[str, _Pair | None]


def _replace(pairs: Pairs, max_unavailable: int) -> Plan:
    """Deletes old pods while no more than `max_unavailable` are missing. Old pods that are not
    available go in any case: deleting them costs nothing."""
    missing = 0
    broken: list[str] = []
    candidates: list[str] = []
    for pair in pairs.values():
        if pair is None or (pair.old is None) == (pair.new is None):
            missing += 1
        elif pair.new is not None:
            missing += not pair.new.available
        elif pair.old is not None and not pair.old.available:
            missing += 1
            broken.append(pair.old.name)
        elif pair.old is not None:
            candidates.append(pair.old.name)
    return Plan(delete=[*broken, *candidates[: max(0, max_unavailable - missing)]])


def _surge(fits: Fits, pairs: Pairs, max_surge: int) -> Plan:
    """New pods come beside the old ones; an old one goes when its successor is available."""
    todo = Plan()
    surging = available = 0
    candidates: list[str] = []
    strays: list[str] = []  # old pods that serve on nodes where none should run
    for node, pair in pairs.items():
        if pair is None:
            surging += 1
            continue
        first = pair.old or pair.new
        available += bool(first and first.available)
        if pair.old is None:
            continue
        if pair.new is not None:
            if pair.new.available:
                todo.delete.append(pair.old.name)
            else:
                surging += 1
        elif fits.get(node) is not Fit.RUN:
            (strays if pair.old.available else todo.delete).append(pair.old.name)
        else:
            (candidates if pair.old.available else todo.create).append(node)
    wanted = sum(fit is Fit.RUN for fit in fits.values())
    todo.delete += strays[: max(0, available - wanted)]
    todo.create += candidates[: max(0, max_surge - surging)]
    return todo


_ALWAYS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


def status_of(daemon_set: Obj, fits: Fits, daemons: Daemons, collisions: int, seen: bool) -> Obj:
    """`seen`: the controller has acted on this generation, so it may be reported as observed."""
    known = daemon_set.get("status", {})
    wanted = [node for node, fit in fits.items() if fit is Fit.RUN]
    there = [min(daemons[node], key=lambda d: d.seniority) for node in wanted if daemons.get(node)]
    strays = [node for node, fit in fits.items() if fit is not Fit.RUN and daemons.get(node)]
    available = sum(daemon.available for daemon in there)
    counts = {
        "currentNumberScheduled": len(there),
        "numberMisscheduled": len(strays),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(daemon.ready for daemon in there),
        "updatedNumberScheduled": sum(daemon.updated for daemon in there),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "collisionCount": collisions,
        "observedGeneration": known.get("observedGeneration", 0),
    }
    if seen:
        counts["observedGeneration"] = daemon_set["metadata"].get("generation", 0)
    return {name: count for name, count in counts.items() if count or name in _ALWAYS}
