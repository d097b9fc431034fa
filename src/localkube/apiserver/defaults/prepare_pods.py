"""A new pod is pending, has a QoS class, and its selectors are completed from its labels."""

from collections.abc import Iterator, Sequence

from kubeclient.objects import Obj
from localkube.apiserver.defaults.pod_resources import qos_class

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def pod(obj: Obj) -> None:
    spec: Obj = obj["spec"]
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if "schedulingGates" in spec:
        since = {"lastTransitionTime": obj["metadata"]["creationTimestamp"]}
        obj["status"]["conditions"] = [_GATED | since]
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        _complete_selectors(spec, obj["metadata"].get("labels", {}))


def pod_status_update(new: Obj, old: Obj) -> None:
    new["metadata"].pop("ownerReferences", None)
    if "ownerReferences" in old["metadata"]:
        new["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
    before, status = old.get("status", {}), new.setdefault("status", {})
    for name in ("qosClass", "observedGeneration"):
        if name not in status and name in before:
            status[name] = before[name]
    seen: dict[str, list[int]] = {}
    for condition in before.get("conditions", ()):
        seen.setdefault(condition["type"], []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions", ()):
        generation = seen.get(condition["type"], [0]).pop(0) if seen.get(condition["type"]) else 0
        if generation and "observedGeneration" not in condition:
            condition["observedGeneration"] = generation


def _complete_selectors(spec: Obj, labels: dict[str, str]) -> None:
    """`matchLabelKeys` become plain requirements, with the pod's own values."""
    for term in _affinity_terms(spec.get("affinity", {})):
        _require(term, term.get("matchLabelKeys", ()), "In", labels)
        _require(term, term.get("mismatchLabelKeys", ()), "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints", ()):
        _require(constraint, constraint.get("matchLabelKeys", ()), "In", labels)


def _affinity_terms(affinity: Obj) -> Iterator[Obj]:
    for name in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(name, {})
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            yield weighted["podAffinityTerm"]
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution", ())


def _require(term: Obj, keys: Sequence[str], operator: str, labels: dict[str, str]) -> None:
    if "labelSelector" not in term:  # selects nothing, and so it stays
        return
    for key in keys:
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            term["labelSelector"].setdefault("matchExpressions", []).append(requirement)
