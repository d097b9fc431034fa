"""How full the cards of a cluster are, and what still fits on them: figures for people.

Only cards that take pods count. Pods also need CPU, memory and the like, which nobody looks at
here: these are upper bounds of what fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gpupool.core.gpu import GpuMode
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.node_state import MODES, CardState

GANG_SIZES = (1, 2, 4, 8)  # whole cards of each pod
_SHARED = MODES.index(GpuMode.SHARED)


@dataclass(slots=True)
class ModelRoom:
    """Cards of one model."""

    cards: int = 0
    free_cards: int = 0  # of which nothing is held
    memory_mib: int = 0
    allocated_mib: int = 0
    # Free on cards that are partly in use: no pod with a whole card can have it.
    stranded_mib: int = 0
    largest_share_mib: int = 0  # the largest share that one card can still give

    def add(self, card: CardState) -> None:
        mib = card.card.memory_mib
        free_mib = card.free * mib // card.all_units
        self.cards += 1
        self.memory_mib += mib
        if card.is_untouched:
            self.free_cards += 1
        else:
            self.allocated_mib += mib if card.wholes else card.units * mib // card.all_units
            self.stranded_mib += free_mib
        self.largest_share_mib = max(self.largest_share_mib, free_mib)


@dataclass(frozen=True, slots=True)
class ClusterRoom:
    models: Mapping[str, ModelRoom] = field(default_factory=dict)
    # By number of whole cards of each pod: how many such pods still fit at once.
    gangs: Mapping[int, int] = field(default_factory=dict)


def cluster_room(cluster: ClusterModel) -> ClusterRoom:
    models: dict[str, ModelRoom] = {}
    for index in cluster.all_nodes():
        for card in cluster.at(int(index)).cards:
            if card.usable:
                models.setdefault(card.card.model, ModelRoom()).add(card)
    return ClusterRoom(models, _gangs(cluster))


def _gangs(cluster: ClusterModel) -> dict[int, int]:
    columns = cluster.columns
    takes_whole = columns.present & ~columns.unschedulable & (columns.mode != _SHARED)
    free = np.where(takes_whole, columns.whole_free, 0)
    return {size: int((free // size).sum()) for size in GANG_SIZES}
