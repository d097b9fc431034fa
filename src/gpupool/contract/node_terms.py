"""Node selector terms, as pods and volumes have them -> values."""

from gpupool.contract.objects import Obj
from gpupool.core.request import NodeOperator, NodeRequirement, NodeTerm


def node_term(term: Obj) -> NodeTerm:
    return NodeTerm(
        labels=tuple(_requirement(r) for r in term.get("matchExpressions") or ()),
        fields=tuple(_requirement(r) for r in term.get("matchFields") or ()),
    )


def required_nodes(spec: Obj) -> tuple[NodeTerm, ...] | None:
    """Of a pod: its required node affinity, any of the terms; None: none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(node_term(term) for term in required["nodeSelectorTerms"]) if required else None


def node_selector(spec: Obj) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((spec.get("nodeSelector") or {}).items()))


def _requirement(requirement: Obj) -> NodeRequirement:
    return NodeRequirement(
        requirement["key"],
        NodeOperator(requirement["operator"]),
        tuple(requirement.get("values") or ()),
    )
