"""verdict_of: what every node costs for pods of one shape, from a cache that is kept up to date.

Three steps, by what each result depends on:

    allowed_nodes   node objects: filters on labels, taints, names; again when a node changes
    _judge          what is held on a node: room, ports, cost; again when a hold changes
    decide.py       pods on other nodes (affinity, spread): for each decision, never cached

Nothing that depends on other nodes may come into a `ShapeVerdict`: the change log says which nodes
changed, so a verdict about node A that depends on node B would not be renewed when B changes.
Tests compare cached verdicts with those of a cluster that was built from scratch.
"""

import numpy as np

from gpupool.core.pods import PodRequest
from gpupool.engine.allowed_nodes import allowed_nodes, catch_up
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import LARGEST_FREE, WHOLE_FREE, Columns
from gpupool.engine.filters import host_ports, resources, volume_limits
from gpupool.engine.filters.gpus import has_cards, has_shares, whole_cards
from gpupool.engine.kernel import LIBRARY, MOST_ROWS, ShapeView, view_of
from gpupool.engine.kinds import ask_of
from gpupool.engine.open_cards import open_columns
from gpupool.engine.policies.places import MOST_CARDS
from gpupool.engine.policies.policy import Ints, Policy
from gpupool.engine.policies.scarcity import milli_of
from gpupool.engine.shapes import MOST_SHAPES
from gpupool.engine.verdict_cache import ALL_CHANGED, NEVER, ShapeVerdict

_MOST_BYTES = 192 * 2**20  # of all cached verdicts together
# An int64 of `costs`, an int32 of `uses` and a bool of `allowed`.
_BYTES_A_NODE = 13
# Added to the cost of nodes with cards for a pod without GPUs. All other costs are smaller, so the
# pod goes to such a node only if no other node fits.
_WITH_CARDS = 2**55
_FEW = 8  # up to this many nodes, plain numbers are faster than vectors
_PERCENT = 100
_MOST_PODS = 2**20  # on one node


def verdict_of(cluster: ClusterModel, pod: PodRequest, policy: Policy) -> ShapeVerdict:
    """The verdict for pods of this shape, up to date with all changes."""
    verdict = verdict_about(cluster, pod, policy)
    catch_up_with_holds(cluster, verdict)
    return verdict


def verdict_about(cluster: ClusterModel, pod: PodRequest, policy: Policy) -> ShapeVerdict:
    """The same, but with costs from before the last holds: for `best_node`, which renews them."""
    key = (policy.name, cluster.shapes.of(pod))
    verdict = cluster.verdicts.get(key)
    if verdict is None:
        _drop_old(cluster)
        verdict = cluster.verdicts[key] = _new_verdict(cluster, pod, policy)
    # By its function: a policy with new prices has the same costs.
    elif verdict.policy.costs is not policy.costs:
        _set_policy(cluster, verdict, policy)
    # Nodes that changed are in both logs, so their costs are renewed with the holds.
    elif verdict.node_changes != cluster.node_changes.position:
        _catch_up_with_nodes(cluster, verdict)
    return verdict


def best_node(cluster: ClusterModel, verdict: ShapeVerdict, policy: Policy) -> tuple[int, int]:
    """The first node with the least cost and price, and the best card for a pod that asks for a
    share of one card and nothing else. Node -1: none fits; card -1: not known. Brings the verdict
    up to date.
    """
    view = view_of(cluster.columns)
    if view is None or verdict.view is None or LIBRARY is None:
        catch_up_with_holds(cluster, verdict)
        return verdict.least(policy), -1
    table, prices = None, 0
    if policy.prices is not None and verdict.ask.cards:
        table, prices = policy.prices.table(verdict.ask.cards, verdict.milli)
    address, count = cluster.changes.address_since(verdict.changes)
    found = LIBRARY.choose(view.address, verdict.view.address, address, count, prices)
    verdict.changes = cluster.changes.position
    # Afterwards: the kernel compares the old prices with the new ones.
    verdict.view.table = table
    if found < 0:
        return -1, -1
    node, card = divmod(found, MOST_ROWS + 1)
    return node, card - 1


def _new_verdict(cluster: ClusterModel, pod: PodRequest, policy: Policy) -> ShapeVerdict:
    size = cluster.columns.size
    need = resources.need_of(pod, cluster.columns)
    ask = ask_of(pod)
    verdict = ShapeVerdict(
        pod=pod,
        policy=policy,
        ask=ask,
        milli=0,
        need=need,
        needs=resources.needs_in(need),
        whole=whole_cards(pod),
        shares=tuple(ask for ask in pod.gpus if ask.units),
        nodes=allowed_nodes(cluster, pod),
        costs=np.full(size, NEVER, dtype=np.int64),
        uses=np.zeros(size, dtype=np.int32),
        changes=ALL_CHANGED,
        node_changes=cluster.node_changes.position,
    )
    _set_policy(cluster, verdict, policy)
    return verdict


def _set_policy(cluster: ClusterModel, verdict: ShapeVerdict, policy: Policy) -> None:
    """All nodes must be judged by it."""
    verdict.policy = policy
    verdict.milli = milli_of(verdict.ask, cluster.largest_card())
    verdict.changes = ALL_CHANGED
    _catch_up_with_nodes(cluster, verdict)
    _set_view(verdict)


def _set_view(verdict: ShapeVerdict) -> None:
    """Without a view, `kernel.py` does not know the policy, or all that this shape asks for."""
    pod, compiled = verdict.pod, verdict.policy.compiled
    if compiled is None or pod.card_choice is not None or pod.host_ports or pod.attached:
        verdict.view = None
    elif verdict.view is not None:
        verdict.view.set_policy(compiled)
    else:
        # The view has bounds of costs, and takes it that there are no costs yet.
        verdict.costs.fill(NEVER)
        verdict.uses.fill(0)
        shares = [(ask.units, ask.cards, ask.percent) for ask in verdict.shares]
        arrays = (verdict.nodes.bits, verdict.costs, verdict.uses)
        verdict.view = ShapeView(_all_needs(verdict), shares, verdict.ask, arrays, compiled)


def _all_needs(verdict: ShapeVerdict) -> list[tuple[int, int]]:
    """What a node must have free, by the rows of `Columns.free`."""
    largest = max([ask.units for ask in verdict.shares], default=0)
    return [*verdict.needs, (WHOLE_FREE, verdict.whole), (LARGEST_FREE, largest)]


def _drop_old(cluster: ClusterModel) -> None:
    # At least a few, however large the cluster is: with one or two cached verdicts most decisions
    # would judge all nodes again.
    most = max(16, _MOST_BYTES // (_BYTES_A_NODE * cluster.columns.size))
    # Of a small cluster each takes little, but has as many objects of Python beside its arrays.
    most = min(most, MOST_SHAPES)
    if len(cluster.verdicts) < most:
        return
    # Many at once: to find the oldest takes longer than to drop them. All verdicts that were used
    # are up to date, so the position in the log says when that was.
    oldest = sorted(cluster.verdicts, key=lambda key: cluster.verdicts[key].changes)
    for key in oldest[: max(1, most // 8)]:
        del cluster.verdicts[key]


def catch_up_with_holds(cluster: ClusterModel, verdict: ShapeVerdict) -> None:
    """Judge again the nodes that changed since the verdict was last used."""
    position = cluster.changes.position
    if verdict.changes == position:
        return
    since, verdict.changes = verdict.changes, position
    view = view_of(cluster.columns)
    if view is not None and verdict.view is not None and LIBRARY is not None:
        LIBRARY.judge(view.address, verdict.view.address, *cluster.changes.address_since(since))
        return
    changed = cluster.changes.since(since)
    # A log that is longer than the cluster lists nodes repeatedly: to judge all of them is not more
    # work. Nodes that are gone are not `allowed` and get the cost NEVER.
    if changed is None or len(changed) > cluster.columns.size:
        _judge_again(cluster, verdict, np.arange(cluster.columns.size))
        return
    different = set(changed)
    few = len(different) <= _FEW and verdict.pod.card_choice is None
    if few and verdict.policy.cost is not None and verdict.ask.cards:
        for node in different:
            verdict.costs[node] = cost = _cost_on(cluster, verdict, node)
            verdict.uses[node] = 0 if cost == NEVER else _use_on(cluster.columns, verdict, node)
    else:
        _judge_again(cluster, verdict, np.array(list(different), dtype=np.intp))


def _judge_again(cluster: ClusterModel, verdict: ShapeVerdict, nodes: Ints) -> None:
    verdict.costs[nodes] = NEVER
    verdict.uses[nodes] = 0
    _judge(cluster, verdict, nodes[verdict.nodes.nodes[nodes]])


def _catch_up_with_nodes(cluster: ClusterModel, verdict: ShapeVerdict) -> None:
    catch_up(cluster, verdict.nodes)
    verdict.node_changes = cluster.node_changes.position
    if len(verdict.need) != len(cluster.columns.free):  # a node brought a new kind of resource
        verdict.need = resources.need_of(verdict.pod, cluster.columns)
        verdict.needs = resources.needs_in(verdict.need)
        if verdict.view is not None:
            verdict.view.set_needs(_all_needs(verdict))


def _judge(cluster: ClusterModel, verdict: ShapeVerdict, nodes: Ints) -> None:
    """Set the cost of the nodes with room. All `nodes` are allowed and have the cost NEVER."""
    columns = cluster.columns
    fits = resources.has_room(columns, verdict.need, nodes)
    if verdict.pod.card_choice is not None:
        fits &= has_cards(verdict.pod, cluster, nodes)
    else:
        if verdict.whole:
            fits &= columns.whole_free[nodes] >= verdict.whole
        for ask in verdict.shares:
            fits &= has_shares(ask, columns, nodes)
    if verdict.pod.host_ports:
        fits &= host_ports.passes(verdict.pod, cluster, nodes)
    if verdict.pod.attached:
        fits &= volume_limits.passes(verdict.pod, cluster, nodes)
    nodes = nodes[fits]
    if len(nodes):
        verdict.costs[nodes] = _costs(cluster, verdict, nodes)
        verdict.uses[nodes] = _uses(columns, verdict, nodes)


def _costs(cluster: ClusterModel, verdict: ShapeVerdict, nodes: Ints) -> Ints:
    columns = cluster.columns
    if verdict.ask.cards and verdict.pod.card_choice is not None:
        there = open_columns(verdict.pod.card_choice, columns, nodes)
        return verdict.policy.costs(there, verdict.ask, np.arange(len(nodes)))
    if verdict.ask.cards:
        return verdict.policy.costs(columns, verdict.ask, nodes)
    costs = np.empty(len(nodes), dtype=np.int64)
    packs = columns.has_cards[nodes] & bool(verdict.ask.cpu_milli or verdict.ask.memory_mib)
    costs[~packs] = _least_allocated(columns, nodes[~packs])
    costs[packs] = verdict.policy.costs(columns, verdict.ask, nodes[packs])
    costs[columns.has_cards[nodes]] += _WITH_CARDS
    return costs


def _uses(columns: Columns, verdict: ShapeVerdict, nodes: Ints) -> Ints:
    """Class of machine, number of untouched cards, and whether the pod takes some of those."""
    untouched = np.minimum(columns.whole_free.take(nodes), MOST_CARDS)
    uses = (columns.machine.take(nodes) * (MOST_CARDS + 1) + untouched) * 2
    if verdict.ask.memory:
        uses += columns.largest_part.take(nodes) < verdict.ask.memory
    else:
        uses += 1
    return np.asarray(uses + 1)


def _use_on(columns: Columns, verdict: ShapeVerdict, node: int) -> int:
    """What `_uses` says, for one node."""
    untouched = min(columns.whole_free.item(node), MOST_CARDS)
    use: int = (columns.machine.item(node) * (MOST_CARDS + 1) + untouched) * 2 + 1
    memory = verdict.ask.memory
    return use + (not memory or columns.largest_part.item(node) < memory)


def _cost_on(cluster: ClusterModel, verdict: ShapeVerdict, node: int) -> int:
    """What `_judge` says, for one node and with plain numbers.

    Between two decisions about one shape few nodes change, and for few nodes this is several times
    faster than vectors. For pods with GPUs that choose no cards, and policies with `cost`. Must
    agree with `_judge`.
    """
    columns = cluster.columns
    if columns.whole_free.item(node) < verdict.whole or not verdict.nodes.nodes[node]:
        return NEVER
    for ask in verdict.shares:
        if columns.largest_free.item(node) < ask.units:
            return NEVER
        if (ask.cards > 1 or ask.percent) and not has_shares(ask, columns, np.array([node]))[0]:
            return NEVER
    free = columns.free
    for at, amount in verdict.needs:
        if free.item(at, node) < amount:
            return NEVER
    if verdict.pod.host_ports and not host_ports.is_free(verdict.pod, cluster, node):
        return NEVER
    if verdict.pod.attached and not volume_limits.has_slots(verdict.pod, cluster, node):
        return NEVER
    assert verdict.policy.cost is not None
    return verdict.policy.cost(columns, verdict.ask, node)


def _least_allocated(columns: Columns, nodes: Ints) -> Ints:
    """For pods without GPUs: the node with the most left, in percent of what it has.

    Among equals the node with the fewest pods: pods may request nothing and still need room.
    """
    cpu = _used_percent(columns.cpu_free[nodes], columns.cpu_total[nodes])
    memory = _used_percent(columns.memory_free[nodes], columns.memory_total[nodes])
    costs: Ints = (cpu + memory) * _MOST_PODS + columns.pods[nodes]
    return costs


def _used_percent(free: Ints, total: Ints) -> Ints:
    """Rounded up; a node without the resource counts as fully used."""
    scale = np.maximum(total // _PERCENT, 1)
    used: Ints = _PERCENT - np.minimum(free // scale, _PERCENT)
    return used
