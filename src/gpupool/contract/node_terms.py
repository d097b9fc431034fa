"""Node selector terms, as pods and volumes have them -> values."""

from gpupool.contract.objects import Obj
from gpupool.core.request import NodeOperator, NodeRequirement, NodeTerm


def node_term(term: Obj) -> NodeTerm:
    return NodeTerm(
        labels=tuple(_requirement(r) for r in term.get("matchExpressions") or ()),
        fields=tuple(_requirement(r) for r in term.get("matchFields") or ()),
    )


def _requirement(requirement: Obj) -> NodeRequirement:
    return NodeRequirement(
        requirement["key"],
        NodeOperator(requirement["operator"]),
        tuple(requirement.get("values") or ()),
    )
