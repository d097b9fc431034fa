"""The pods of a DaemonSet: on which nodes they belong, and how they are made. Pure."""

from collections.abc import Mapping

import msgspec

from kubeclient.objects import Obj
from kubeclient.placement import Effect
from kubeclient.resources import DAEMON_SETS
from localkube.controllers.daemon_set_plan import Fit
from localkube.controllers.pods import (
    annotation,
    is_terminating,
    pod_from_template,
    ready_since_s,
    seconds_to_available,
)
from localkube.controllers.revisions import POD_LABEL
from localkube.placement import NodeDemand, NodeOffer, node_demand

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_GENERATION_LABEL = "pod-template-generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# Taints of node problems that daemons tolerate.
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_BY_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def tolerations(spec: Obj) -> list[Obj]:
    """Those of the template, and those of every daemon, which replace equal ones."""
    wanted = [*_TOLERATED, *([_TOLERATED_BY_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    own = list(spec.get("tolerations") or ())
    for each in added:
        for place, known in enumerate(own):
            if _is_alike(known, each):
                own[place] = each
                break
        else:
            own.append(each)
    return own


def _is_alike(one: Obj, other: Obj) -> bool:
    return all(
        (one.get(field) or default) == (other.get(field) or default)
        for field, default in (("key", ""), ("effect", ""), ("operator", "Equal"), ("value", ""))
    )


def requirements(daemon_set: Obj) -> NodeDemand:
    """What the pods ask of a node."""
    spec = daemon_set["spec"]["template"]["spec"]
    return node_demand({"spec": {**spec, "tolerations": tolerations(spec)}})


def fit(demand: NodeDemand, node: NodeOffer) -> Fit:
    if demand.node_name not in ("", node.name) or not demand.selects(node):
        return Fit.GO
    untolerated = {taint.effect for taint in demand.untolerated(node)}
    if Effect.NO_EXECUTE in untolerated:
        return Fit.GO
    return Fit.STAY if Effect.NO_SCHEDULE in untolerated else Fit.RUN


def new_pod(daemon_set: Obj, node: str, suffix: str) -> Obj:
    """`suffix`: of the current revision. The affinity names one node, and the scheduler binds the
    pod to it."""
    template = daemon_set["spec"]["template"]
    pod = pod_from_template(daemon_set, DAEMON_SETS, template)
    labels = {**(pod["metadata"].get("labels") or {}), POD_LABEL: suffix}
    generation = template_generation(daemon_set)
    if generation:
        labels[_GENERATION_LABEL] = generation
    pod["metadata"]["labels"] = labels
    spec = template["spec"]
    affinity = spec.get("affinity") or {}
    this_node = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [this_node]}]}
    pod["spec"] = {
        **spec,
        "tolerations": tolerations(spec),
        "affinity": {
            **affinity,
            "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: required},
        },
    }
    return pod


def node_of(pod: Obj) -> str:
    """The node that the pod runs on, or that its affinity names."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


class DaemonPod(msgspec.Struct, frozen=True, gc=False):
    """What a DaemonSet has to know of a pod."""

    name: str
    uid: str
    labels: dict[str, str]
    node: str
    placed: bool
    phase: str
    terminating: bool
    ready_since_s: float | None
    created: str

    @property
    def revision(self) -> str:
        return self.labels.get(POD_LABEL, "")

    def is_updated(self, suffix: str, generation: str) -> bool:
        if self.revision == suffix:
            return True
        return bool(generation) and self.labels.get(_GENERATION_LABEL) == generation

    def seconds_to_available(self, min_ready_s: int, now_s: float) -> float | None:
        return seconds_to_available(self.ready_since_s, min_ready_s, now_s)


def daemon_pod_of(pod: Obj) -> DaemonPod:
    metadata = pod["metadata"]
    return DaemonPod(
        name=metadata["name"],
        uid=metadata["uid"],
        labels=metadata.get("labels") or {},
        node=node_of(pod),
        placed=bool(pod["spec"].get("nodeName")),
        phase=pod.get("status", {}).get("phase", "Pending"),
        terminating=is_terminating(pod),
        ready_since_s=ready_since_s(pod),
        created=metadata["creationTimestamp"],
    )


def template_generation(daemon_set: Obj) -> str:
    return annotation(daemon_set, _TEMPLATE_GENERATION)


def fits(daemon_set: Obj, nodes: Mapping[str, NodeOffer]) -> dict[str, Fit]:
    request = requirements(daemon_set)
    return {name: fit(request, nodes[name]) for name in sorted(nodes)}
