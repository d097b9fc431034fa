"""The replica sets of a deployment: which is the new one, and what is written on them. Pure."""

from collections.abc import Sequence

from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS
from localkube.controllers.pods import annotation, content_hash, controller_reference
from localkube.controllers.rollout import Bounds, Size, bounds

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
    """The template as the deployment has it: without the label that was added."""
    template: Obj = obj["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def age(replica_set: Obj) -> tuple[str, str]:
    return replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]


def new_of(deployment: Obj, sets: Sequence[Obj]) -> Obj | None:
    """`sets` come oldest first; of several that fit, the oldest it is, always the same."""
    wanted = template_of(deployment)
    return next((each for each in sets if template_of(each) == wanted), None)


def revision_of(obj: Obj) -> int:
    text = annotation(obj, REVISION)
    return int(text) if text.isascii() and text.isdigit() else 0


def size_of(replica_set: Obj, deployment: Obj) -> Size:
    status, made_for = replica_set.get("status", {}), annotation(replica_set, _MAX)
    known = int(made_for) if made_for.isascii() and made_for.isdigit() else 0
    return Size(
        replica_set["metadata"]["name"],
        replica_set["spec"]["replicas"],
        status.get("availableReplicas", 0),
        known or deployment.get("status", {}).get("replicas", 0),
    )


def was_resized(deployment: Obj, sets: Sequence[Obj]) -> bool:
    """Since the sizes of its active replica sets were chosen."""
    wanted = str(deployment["spec"]["replicas"])
    return any(
        annotation(each, _DESIRED) not in ("", wanted) for each in sets if each["spec"]["replicas"]
    )


def is_saturated(deployment: Obj, replica_set: Obj | None) -> bool:
    """Everybody agrees that it is the whole deployment, and it is up."""
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
    """What the new replica set carries: the deployment's annotations and its own number. One
    that comes back under a new number keeps the old ones on record."""
    own = deployment["metadata"].get("annotations") or {}
    found = {**known, **{k: v for k, v in own.items() if k not in _NOT_COPIED}}
    had = known.get(REVISION, "")
    if had and not had.isdigit():
        return found
    if int(had or 0) < revision:
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
    """Annotations that say for what size of the deployment a size was chosen."""
    limits = limits_of(deployment)
    return {**found, _DESIRED: str(limits.replicas), _MAX: str(limits.most)}


def to_forget(deployment: Obj, old: Sequence[Obj]) -> list[Obj]:
    """Of the old replica sets, the idle ones beyond what the history may hold."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    staying = [each for each in old if "deletionTimestamp" not in each["metadata"]]
    oldest = sorted(staying, key=lambda each: (revision_of(each), age(each)))
    return [each for each in oldest[: max(0, len(oldest) - limit)] if _is_idle(each)]


def _is_idle(replica_set: Obj) -> bool:
    status = replica_set.get("status", {})
    seen = status.get("observedGeneration", 0) >= replica_set["metadata"].get("generation", 0)
    return seen and not replica_set["spec"]["replicas"] and not status.get("replicas")
