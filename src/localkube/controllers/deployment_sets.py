"""The replica sets of a Deployment: which one is new, what is written on them, and how many pods
each of them has at every step of a rollout. Pure.

Two promises hold at every step of a rolling update: never more than replicas + maxSurge pods, and
never fewer than replicas - maxUnavailable available ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS
from localkube.controllers.pods import (
    annotation,
    content_hash,
    controller_reference,
    count_of,
    whole_number,
)


@dataclass(frozen=True, slots=True)
class Bounds:
    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        return self.replicas - self.unavailable


@dataclass(frozen=True, slots=True)
class Size:
    """What the rollout needs of a replica set."""

    name: str
    wanted: int  # spec.replicas
    available: int
    made_for: int = 0  # the most pods that the deployment could have when this size was chosen

    @property
    def staying(self) -> int:
        """The available pods that it keeps. A set which was told to shrink reports the pods that it
        is about to delete as available until it writes its next status."""
        return min(self.available, self.wanted)


def bounds(replicas: int, max_surge: int | str, max_unavailable: int | str) -> Bounds:
    """Percentages of the size: surge is rounded up, unavailable down. If both are zero, one pod may
    be unavailable, or the rollout would never move."""
    surge = count_of(max_surge, replicas, round_up=True)
    unavailable = count_of(max_unavailable, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, min(unavailable, replicas))


def new_size(limits: Bounds, new: Size, old: Sequence[Size]) -> int:
    """How large the new replica set may be now."""
    if new.wanted >= limits.replicas:
        return limits.replicas
    room = limits.most - new.wanted - sum(size.wanted for size in old)
    return new.wanted + max(0, min(room, limits.replicas - new.wanted))


def old_sizes(limits: Bounds, new: Size, old: Sequence[Size]) -> dict[str, int]:
    """The new size of each old replica set whose size changes. `old` comes oldest first."""
    total = new.wanted + sum(size.wanted for size in old)
    spare = total - limits.least - (new.wanted - new.staying)
    if spare <= 0:
        return {}
    sizes = {size.name: size.wanted for size in old}
    # First the pods that are not available: deleting them costs no availability.
    for size in old:
        broken = min(spare, size.wanted - size.staying)
        if broken > 0:
            sizes[size.name] -= broken
            spare -= broken
    extra = new.staying + sum(size.staying for size in old) - limits.least
    for size in old:
        less = min(extra, sizes[size.name])
        if less > 0:
            sizes[size.name] -= less
            extra -= less
    return {size.name: sizes[size.name] for size in old if sizes[size.name] != size.wanted}


def proportional_sizes(limits: Bounds, sets: Sequence[Size]) -> dict[str, int]:
    """For a Deployment that is resized during a rollout: every replica set grows or shrinks by its
    share, and the largest takes what rounding leaves. `sets` come oldest first."""
    allowed = limits.most if limits.replicas else 0
    to_add = allowed - sum(size.wanted for size in sets)
    # Of equal sizes, the newer set grows first and the older one shrinks first.
    age = -1 if to_add > 0 else 1
    order = sorted(enumerate(sets), key=lambda place: (-place[1].wanted, age * place[0]))
    sizes: dict[str, int] = {}
    left = to_add
    for _, size in order:
        share = _share(limits, size)
        step = max(0, min(share, left)) if to_add > 0 else min(0, max(share, left))
        sizes[size.name] = size.wanted + step
        left -= step
    if order:
        largest = order[0][1].name
        sizes[largest] = max(0, sizes[largest] + left)
    return sizes


def _share(limits: Bounds, size: Size) -> int:
    if not limits.replicas:
        return -size.wanted
    if not size.made_for:
        return 0
    # Rounded half up, as in Kubernetes: round() would round half to even.
    doubled = 2 * size.wanted * limits.most + size.made_for
    return doubled // (2 * size.made_for) - size.wanted


HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_HISTORY = "deployment.kubernetes.io/revision-history"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAX = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset(
    {
        REVISION,
        _HISTORY,
        _DESIRED,
        _MAX,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    }
)
_LONGEST_NAME = 253
_LONGEST_HISTORY = 2000


def limits_of(deployment: Obj) -> Bounds:
    spec = deployment["spec"]
    rolling = spec["strategy"].get("rollingUpdate")
    if spec["strategy"]["type"] != "RollingUpdate" or rolling is None:
        return Bounds(spec["replicas"], 0, 0)
    return bounds(spec["replicas"], rolling["maxSurge"], rolling["maxUnavailable"])


def template_of(obj: Obj) -> Obj:
    """The template without the hash label, which only replica sets have."""
    template: Obj = obj["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def age(replica_set: Obj) -> tuple[str, str]:
    return replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]


def new_of(deployment: Obj, sets: Sequence[Obj]) -> Obj | None:
    """The replica set of the current template: the oldest, if there are several. `sets` come oldest
    first."""
    wanted = template_of(deployment)
    return next((each for each in sets if template_of(each) == wanted), None)


def revision_of(obj: Obj) -> int:
    return whole_number(annotation(obj, REVISION)) or 0


def size_of(replica_set: Obj, deployment: Obj) -> Size:
    status = replica_set.get("status", {})
    known = whole_number(annotation(replica_set, _MAX))
    return Size(
        replica_set["metadata"]["name"],
        replica_set["spec"]["replicas"],
        status.get("availableReplicas", 0),
        known or deployment.get("status", {}).get("replicas", 0),
    )


def was_resized(deployment: Obj, sets: Sequence[Obj]) -> bool:
    """Whether the Deployment has another size than when its active replica sets were sized."""
    wanted = str(deployment["spec"]["replicas"])
    return any(
        annotation(each, _DESIRED) not in ("", wanted) for each in sets if each["spec"]["replicas"]
    )


def is_saturated(deployment: Obj, replica_set: Obj | None) -> bool:
    """Whether this replica set has all wanted pods, and all of them are available."""
    if replica_set is None:
        return False
    wanted = deployment["spec"]["replicas"]
    available = replica_set.get("status", {}).get("availableReplicas", 0)
    return bool(
        replica_set["spec"]["replicas"] == wanted == available
        and annotation(replica_set, _DESIRED) == str(wanted)
    )


def new_replica_set(deployment: Obj, revision: int, size: int, collisions: int) -> Obj:
    metadata, spec, template = deployment["metadata"], deployment["spec"], template_of(deployment)
    suffix = content_hash(template, collisions)
    labels = {**template["metadata"]["labels"], HASH_LABEL: suffix}
    selector = spec["selector"]
    chosen = {**(selector.get("matchLabels") or {}), HASH_LABEL: suffix}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name'][: _LONGEST_NAME - len(suffix) - 1]}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": with_sizes(annotations(deployment, {}, revision), deployment),
            "ownerReferences": [controller_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": {**selector, "matchLabels": chosen},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def annotations(deployment: Obj, known: Obj, revision: int) -> Obj:
    """The annotations of the new replica set: those of the Deployment, and its revision number. A
    replica set that gets a new number (rollback) keeps its old numbers in the history."""
    own = deployment["metadata"].get("annotations") or {}
    found = {**known, **{k: v for k, v in own.items() if k not in _NOT_COPIED}}
    had = known.get(REVISION, "")
    number = whole_number(had or "0")
    if number is not None and number < revision:
        found[REVISION] = str(revision)
        if had:
            found[_HISTORY] = _longer_history(known.get(_HISTORY, ""), had)
    return found


def _longer_history(history: str, revision: str) -> str:
    numbers = [*filter(None, history.split(",")), revision]
    while len(",".join(numbers)) > _LONGEST_HISTORY:
        del numbers[0]
    return ",".join(numbers)


def with_sizes(found: Obj, deployment: Obj) -> Obj:
    """Adds the size of the Deployment for which the replica set was sized."""
    limits = limits_of(deployment)
    return {**found, _DESIRED: str(limits.replicas), _MAX: str(limits.most)}


def to_forget(deployment: Obj, old: Sequence[Obj]) -> list[Obj]:
    """The oldest replica sets beyond revisionHistoryLimit, if they have no pods."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    staying = [each for each in old if "deletionTimestamp" not in each["metadata"]]
    oldest = sorted(staying, key=lambda each: (revision_of(each), age(each)))
    return [each for each in oldest[: max(0, len(oldest) - limit)] if _is_idle(each)]


def _is_idle(replica_set: Obj) -> bool:
    status = replica_set.get("status", {})
    seen = status.get("observedGeneration", 0) >= replica_set["metadata"].get("generation", 0)
    return seen and not replica_set["spec"]["replicas"] and not status.get("replicas")
