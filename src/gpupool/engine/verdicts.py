"""Verdicts: for pods of one shape, what every node would cost; only changed nodes are judged again.

A row depends on nothing but the nodes themselves and what is held of each. Constraints that look at
pods elsewhere are judged for each decision (`decide.py`).
"""

from collections.abc import Hashable

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import Cluster
from gpupool.engine.columns import Bools
from gpupool.engine.filters import OF_THE_NODE, host_ports, resources
from gpupool.engine.filters.gpus import allows_mode, has_shares, whole_cards
from gpupool.engine.least_allocated import least_allocated
from gpupool.engine.policies.policy import Ask, Ints, Policy
from gpupool.engine.row import NEVER, Row
from gpupool.engine.verdict_of_one import verdict_of_one
from kubeclient.placement import Effect

_MOST_BYTES = 192 * 2**20  # of all rows together
_BYTES_A_NODE = 9
_MIB_SHIFT = 20
# A pod without GPUs goes to a node with cards only if there is no other: all costs are below this.
_WITH_CARDS = 2**55
_FEW = 8  # so many nodes are judged faster one by one


def shape_of(pod: PodRequest) -> Hashable:
    """Equal for pods that every node and every policy treats alike."""
    return (
        tuple(pod.resources.items()),
        tuple([(a.whole, a.units, a.cards, a.percent, a.is_init) for a in pod.gpus]),
        pod.node_selector,
        pod.node_terms,
        pod.tolerations,
        pod.host_ports,
        pod.node_name,
        pod.volume_terms,
    )


def ask_of(pod: PodRequest) -> Ask:
    """As policies see it; of several containers with GPUs, the one that asks for most."""
    cpu = pod.resources.get("cpu", 0)
    memory = pod.resources.get("memory", 0) >> _MIB_SHIFT
    if not pod.gpus:
        return Ask(0, 0, 0, cpu, memory)
    ask = pod.gpus[0]
    if len(pod.gpus) > 1:
        ask = max(pod.gpus, key=lambda a: (a.whole, a.units * a.cards, a.percent))
    return Ask(ask.whole or ask.cards, ask.units, ask.percent, cpu, memory)


def row_of(cluster: Cluster, pod: PodRequest, policy: Policy) -> Row:
    """Up to date."""
    key = (id(policy), shape_of(pod))
    row = cluster.rows.get(key)
    if row is None or row.policy is not policy:
        row = cluster.rows[key] = _new_row(cluster, pod, policy)
        _drop_old(cluster)
        return row
    cluster.rows.move_to_end(key)
    _catch_up(cluster, row)
    return row


def _new_row(cluster: Cluster, pod: PodRequest, policy: Policy) -> Row:
    size = cluster.columns.size
    need = resources.need_of(pod, cluster.columns)
    row = Row(
        pod=pod,
        policy=policy,
        ask=ask_of(pod),
        need=need,
        needs=resources.needs_in(need),
        whole=whole_cards(pod),
        shares=tuple(ask for ask in pod.gpus if ask.units),
        allowed=np.zeros(size, dtype=np.bool_),
        costs=np.full(size, NEVER, dtype=np.int64),
        changes=cluster.changes.position,
        node_changes=cluster.node_changes.position,
    )
    nodes = cluster.all_nodes()
    _judge_nodes(cluster, row, nodes)
    _judge(cluster, row, nodes[row.allowed[nodes]])
    return row


def _drop_old(cluster: Cluster) -> None:
    most = max(16, _MOST_BYTES // (_BYTES_A_NODE * cluster.columns.size))
    while len(cluster.rows) > most:
        cluster.rows.popitem(last=False)


def _catch_up(cluster: Cluster, row: Row) -> None:
    position = cluster.changes.position
    if row.changes == position:
        return
    if row.node_changes != cluster.node_changes.position:
        _catch_up_with_nodes(cluster, row)
    changed = cluster.changes.since(row.changes)
    row.changes = position
    if changed is None or len(changed) > cluster.columns.size:
        _judge_again(cluster, row, np.arange(cluster.columns.size))
        return
    different = set(changed)
    if len(different) <= _FEW and row.policy.cost is not None and row.ask.cards:
        for node in different:
            row.costs[node] = verdict_of_one(cluster, row, node)
    else:
        _judge_again(cluster, row, np.array(list(different), dtype=np.intp))


def _judge_again(cluster: Cluster, row: Row, nodes: Ints) -> None:
    row.costs[nodes] = NEVER
    _judge(cluster, row, nodes[row.allowed[nodes]])


def _catch_up_with_nodes(cluster: Cluster, row: Row) -> None:
    changed = cluster.node_changes.since(row.node_changes)
    row.node_changes = cluster.node_changes.position
    if len(row.need) != len(cluster.columns.free):
        row.need = resources.need_of(row.pod, cluster.columns)
        row.needs = resources.needs_in(row.need)
    present = cluster.columns.present
    if changed is None:
        row.allowed[:] = False
        nodes = np.flatnonzero(present)
    else:
        listed = np.array(list(set(changed)), dtype=np.intp)
        row.allowed[listed] = False
        nodes = listed[present[listed]]
    _judge_nodes(cluster, row, nodes)


def _judge_nodes(cluster: Cluster, row: Row, nodes: Ints) -> None:
    """By what the nodes are."""
    allowed: Bools = np.ones(len(nodes), dtype=np.bool_)
    for filter_ in OF_THE_NODE:
        allowed &= filter_.passes(row.pod, cluster, nodes)
    if row.pod.gpus:
        allowed &= allows_mode(row.pod, cluster, nodes)
    row.allowed[nodes] = allowed
    row.has_soft_taints = any(
        taint.effect == Effect.PREFER_NO_SCHEDULE
        and not any(toleration.tolerates(taint) for toleration in row.pod.tolerations)
        for taints in cluster.taint_sets
        for taint in taints
    )


def _judge(cluster: Cluster, row: Row, nodes: Ints) -> None:
    """By what is held of the nodes; all of them are allowed, and none has a cost yet."""
    columns = cluster.columns
    fits = resources.has_room(columns, row.need, nodes)
    if row.whole:
        fits &= columns.whole_free[nodes] >= row.whole
    for ask in row.shares:
        fits &= has_shares(ask, columns, nodes)
    if row.pod.host_ports:
        fits &= host_ports.passes(row.pod, cluster, nodes)
    nodes = nodes[fits]
    if len(nodes):
        row.costs[nodes] = _costs(cluster, row, nodes)


def _costs(cluster: Cluster, row: Row, nodes: Ints) -> Ints:
    columns = cluster.columns
    if row.ask.cards:
        return row.policy.costs(columns, row.ask, nodes)
    costs = np.empty(len(nodes), dtype=np.int64)
    packs = columns.has_cards[nodes] & bool(row.ask.cpu_milli or row.ask.memory_mib)
    costs[~packs] = least_allocated(columns, nodes[~packs])
    costs[packs] = row.policy.costs(columns, row.ask, nodes[packs])
    costs[columns.has_cards[nodes]] += _WITH_CARDS
    return costs
