"""FILTERS: each one reason for which a node cannot take a pod, in kube-scheduler's words."""

from collections.abc import Callable

from gpupool.core.request import Effect, PodRequest
from gpupool.engine.usage import Usage

# The reasons why not; none: the node will do.
Filter = Callable[[PodRequest, Usage], list[str]]


def unschedulable(pod: PodRequest, usage: Usage) -> list[str]:
    if not usage.node.unschedulable:
        return []
    tolerated = any(
        t.exists and t.key in ("", "node.kubernetes.io/unschedulable") for t in pod.tolerations
    )
    return [] if tolerated else ["node(s) were unschedulable"]


def node_name(pod: PodRequest, usage: Usage) -> list[str]:
    if pod.node_name and pod.node_name != usage.node.name:
        return ["node(s) didn't match the requested node name"]
    return []


def taints(pod: PodRequest, usage: Usage) -> list[str]:
    for taint in usage.node.taints:
        if taint.effect == Effect.PREFER_NO_SCHEDULE:
            continue
        if not any(t.tolerates(taint) for t in pod.tolerations):
            return [f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"]
    return []


def node_affinity(pod: PodRequest, usage: Usage) -> list[str]:
    labels, name = usage.node.labels, usage.node.name
    selected = all(labels.get(key) == value for key, value in pod.node_selector)
    if selected and pod.node_terms is not None:
        selected = any(term.matches(name, labels) for term in pod.node_terms)
    return [] if selected else ["node(s) didn't match Pod's node affinity/selector"]


def host_ports(pod: PodRequest, usage: Usage) -> list[str]:
    taken = any(mine.collides(theirs) for mine in pod.host_ports for theirs in usage.ports)
    return ["node(s) didn't have free ports for the requested pod ports"] if taken else []


def resources(pod: PodRequest, usage: Usage) -> list[str]:
    return [
        "Too many pods" if name == "pods" else f"Insufficient {name}" for name in usage.lacking(pod)
    ]


# In kube-scheduler's order: the first filter that refuses gives the reasons.
FILTERS: tuple[Filter, ...] = (
    unschedulable,
    node_name,
    taints,
    node_affinity,
    host_ports,
    resources,
)
