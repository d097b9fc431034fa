"""DefaultTolerationSeconds and TaintNodesByCondition."""

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
)

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_SECONDS = 300
_ADDED = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}


def tolerate_short_outages(attributes: Attributes, cluster: ClusterView) -> None:
    """A pod stays five minutes on a node that does not answer, unless it says otherwise."""
    if attributes.obj is None or attributes.subresource:
        return
    spec = attributes.obj["spec"]
    tolerations: list[Obj] = spec.get("tolerations") or []
    added = [
        {"key": key, **_ADDED}
        for key in (_NOT_READY, _UNREACHABLE)
        if not (tolerations and any(_covers(toleration, key) for toleration in tolerations))
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _covers(toleration: Obj, key: str) -> bool:
    return (toleration.get("key") or key) == key and toleration.get("effect") in (
        None,
        "",
        "NoExecute",
    )


def taint_new_node(attributes: Attributes, cluster: ClusterView) -> None:
    """Nothing is scheduled to a node before it was ready once."""
    node = attributes.created
    if node is None:
        return
    spec = node.setdefault("spec", {})
    taints: list[Obj] = spec.get("taints") or []
    taint = {"key": _NOT_READY, "effect": "NoSchedule"}
    if not any(taint.items() <= each.items() for each in taints):
        spec["taints"] = [*taints, taint]
