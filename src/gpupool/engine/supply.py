"""What a market of `policies/scarcity.py` is made from: classes of machines, and what is free."""

from collections.abc import Sequence

import numpy as np

from gpupool.core.gpu import GpuMode
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.columns import Columns
from gpupool.engine.kernel import LIBRARY, ResidueView, free_by_class, view_of
from gpupool.engine.node_state import MODES
from gpupool.engine.policies.places import Place
from gpupool.engine.policies.policy import Floats, Ints, Policy
from gpupool.engine.policies.scarcity import Gives, Machines

_WHOLE, _SHARED = MODES.index(GpuMode.WHOLE), MODES.index(GpuMode.SHARED)


def machines_of(cluster: ClusterModel) -> Machines:
    """Of each class the largest; a class without nodes has no cards."""
    columns, count = cluster.columns, max(len(cluster.machines), 1)
    nodes = np.flatnonzero(columns.present & columns.has_cards)
    at = columns.machine[nodes]
    model, cards, cpu, memory = np.zeros((4, count), dtype=np.int64)
    # A class may have nodes of two modes where there are too many classes.
    gives = np.zeros((2, count), dtype=np.bool_)
    for row, other in zip(gives, (_SHARED, _WHOLE), strict=True):
        row[at[columns.mode[nodes] != other]] = True
    model[at] = columns.model[nodes]
    np.maximum.at(cards, at, (columns.card_total[:, nodes] > 1).sum(axis=0))
    np.maximum.at(cpu, at, columns.cpu_total[nodes])
    np.maximum.at(memory, at, columns.memory_total[nodes])
    return Machines(
        model.tolist(),
        cards.tolist(),
        cpu.tolist(),
        memory.tolist(),
        [Gives(*each) for each in gives.T.tolist()],
    )


def knows_all(machines: Machines, cluster: ClusterModel) -> bool:
    """Whether every class that has nodes now had some when these were made."""
    columns = cluster.columns
    known = np.array([any(gives) for gives in machines.gives], dtype=np.bool_)
    here = columns.machine[columns.present & columns.has_cards]
    return len(known) == len(cluster.machines) and bool(known[here].all())


def free_of(
    cluster: ClusterModel, policy: Policy, machines: Machines, places: Sequence[Sequence[Place]]
) -> Floats:
    """(M, Z): thousandths of cards that pods can use; then, for each size, the free places: as many
    untouched cards of a node, with CPU and memory. A node may have several. `places`: (M, Z).
    """
    columns, view = cluster.columns, view_of(cluster.columns)
    if view is not None and isinstance(policy.compiled, ResidueView) and LIBRARY is not None:
        return free_by_class(LIBRARY, view, policy.compiled, places, len(machines.cards))
    assert policy.usable is not None
    return _free_of(columns, policy.usable(columns), len(machines.cards), places)


def _free_of(
    columns: Columns, parts: Ints, count: int, places: Sequence[Sequence[Place]]
) -> Floats:
    """`parts`: what pods can use of each node."""
    usable = columns.present & columns.has_cards
    at = columns.machine[usable]
    left = [row[usable] for row in (columns.whole_free, columns.cpu_free, columns.memory_free)]
    # A node may be newer than the market: its class is not in it yet.
    asked = np.array(places).transpose(1, 2, 0).take(at, axis=2, mode="clip")
    rows = [parts[usable], *(_places_on(left, each) for each in asked[1:])]
    return np.stack([np.bincount(at, row, count)[:count] for row in rows], axis=1)


def _places_on(left: Sequence[Ints], asked: Ints) -> Ints:
    """As `Room.places`, for many nodes: (3, nodes), what a pod asks for on each."""
    found: Ints = left[0] // asked[0]
    for row, amount in zip(left[1:], asked[1:], strict=True):
        found = np.where(amount, np.minimum(found, row // np.maximum(amount, 1)), found)
    return found
