"""Node selector and required node affinity, as comparisons of interned label values."""

from collections.abc import Sequence

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Bools
from gpupool.engine.filters.filter import single_reason
from gpupool.engine.policies.policy import Ints
from kubeclient.placement import NodeOperator, NodeRequirement, NodeTerm

REASON = "node(s) didn't match Pod's node affinity/selector"


def passes(pod: PodRequest, cluster: ClusterModel, nodes: Ints) -> Bools:
    return selected(cluster, pod.node_selector, pod.node_terms, nodes)


def selected(
    cluster: ClusterModel,
    selector: tuple[tuple[str, str], ...],
    terms: tuple[NodeTerm, ...] | None,
    nodes: Ints,
) -> Bools:
    allowed = np.ones(len(nodes), dtype=np.bool_)
    for key, value in selector:
        allowed &= _is_one_of(cluster, key, (value,), nodes)
    if terms is not None:
        allowed &= any_term(cluster, terms, nodes)
    return allowed


def any_term(cluster: ClusterModel, terms: Sequence[NodeTerm], nodes: Ints) -> Bools:
    found = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms:
        found |= term_matches(cluster, term, nodes)
    return found


def term_matches(cluster: ClusterModel, term: NodeTerm, nodes: Ints) -> Bools:
    """All requirements must hold; an empty term matches no node."""
    if not term.labels and not term.fields:
        return np.zeros(len(nodes), dtype=np.bool_)
    found = np.ones(len(nodes), dtype=np.bool_)
    for requirement in term.labels:
        found &= _label_matches(cluster, requirement, nodes)
    for requirement in term.fields:
        found &= _name_matches(cluster, requirement, nodes)
    return found


def _label_matches(cluster: ClusterModel, requirement: NodeRequirement, nodes: Ints) -> Bools:
    key = requirement.key
    match requirement.operator:
        case NodeOperator.IN:
            return _is_one_of(cluster, key, requirement.values, nodes)
        case NodeOperator.NOT_IN:
            return ~_is_one_of(cluster, key, requirement.values, nodes)
        case NodeOperator.EXISTS:
            return np.asarray(cluster.label(key)[nodes] != 0)
        case NodeOperator.DOES_NOT_EXIST:
            return np.asarray(cluster.label(key)[nodes] == 0)
        case NodeOperator.GREATER | NodeOperator.LESS:
            # There are few different values and many nodes: the values are compared, once each.
            good = tuple(v for v in cluster.label_numbers(key) if requirement.matches({key: v}))
            return _is_one_of(cluster, key, good, nodes)


def _is_one_of(cluster: ClusterModel, key: str, values: Sequence[str], nodes: Ints) -> Bools:
    column = cluster.label(key)
    numbers = cluster.label_numbers(key)
    wanted = np.zeros(len(numbers) + 1, dtype=np.bool_)
    wanted[[numbers[value] for value in values if value in numbers]] = True
    found: Bools = wanted[column[nodes]]
    return found


def _name_matches(cluster: ClusterModel, requirement: NodeRequirement, nodes: Ints) -> Bools:
    """Requirements on metadata.name: `In` is a lookup, other operators look at every node."""
    if requirement.operator is NodeOperator.IN:
        states = (cluster.state(name) for name in requirement.values)
        return np.isin(nodes, [state.index for state in states if state])
    names = [cluster.at(int(node)).node.name for node in nodes]
    return np.array(
        [requirement.matches({"metadata.name": name}) for name in names], dtype=np.bool_
    )


NODE_AFFINITY = single_reason(passes, REASON, curable=False)
