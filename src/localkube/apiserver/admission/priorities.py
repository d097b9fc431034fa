"""Priority: a pod's class becomes its number; only one class is the default."""

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    Operation,
    refusal,
)

_CLASSES = "priorityclasses.scheduling.k8s.io"
_SYSTEM_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})


def resolve_priority(attributes: Attributes, cluster: ClusterView) -> None:
    if attributes.obj is None or attributes.subresource:
        return
    spec = attributes.obj["spec"]
    if attributes.operation is Operation.UPDATE:
        _keep(spec, (attributes.old or {}).get("spec") or {})
        return
    name = spec.get("priorityClassName")
    if name:
        found = cluster.get(_CLASSES, "", name)
        if found is None:
            raise refusal(attributes, f"no PriorityClass with name {name} was found")
        value, policy = found.get("value", 0), found.get("preemptionPolicy")
    else:
        default = default_class(cluster)
        if default is not None:
            spec["priorityClassName"] = default["metadata"]["name"]
        value = (default or {}).get("value", 0)
        policy = (default or {}).get("preemptionPolicy", "PreemptLowerPriority")
    _set(attributes, spec, value, policy)


def check_priority_class(attributes: Attributes, cluster: ClusterView) -> None:
    new = attributes.obj
    if new is None or attributes.subresource or not new.get("globalDefault"):
        return
    default = default_class(cluster)
    if default is None:
        return
    name = default["metadata"]["name"]
    if attributes.operation is Operation.CREATE or name != new["metadata"]["name"]:
        why = f"PriorityClass {name} is already marked as default. Only one default can exist"
        raise refusal(attributes, why)


def keep_system_class(attributes: Attributes, cluster: ClusterView) -> None:
    """On a DELETE."""
    if attributes.name in _SYSTEM_CLASSES:
        why = "this is a system priority class and cannot be deleted"
        raise refusal(attributes, why)


def default_class(cluster: ClusterView) -> Obj | None:
    """The lowest, if there should be several."""
    defaults = [each for each in cluster.list(_CLASSES) if each.get("globalDefault")]
    return min(defaults, key=lambda each: each.get("value", 0), default=None)


def _keep(spec: Obj, old: Obj) -> None:
    for field in ("priority", "preemptionPolicy"):
        if field not in spec and field in old:
            spec[field] = old[field]


def _set(attributes: Attributes, spec: Obj, value: int, policy: str | None) -> None:
    computed = "priority admission controller computed {} from the given PriorityClass name"
    if spec.get("priority", value) != value:
        what = f"the integer value of priority ({spec['priority']})"
        why = f"{what} must not be provided in pod spec; {computed.format(value)}"
        raise refusal(attributes, why)
    spec["priority"] = value
    if policy is None:
        return
    if spec.get("preemptionPolicy", policy) != policy:
        what = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']})"
        why = f"{what} must not be provided in pod spec; {computed.format(policy)}"
        raise refusal(attributes, why)
    spec["preemptionPolicy"] = policy
