"""Which cards a pod's choice of models and uuids leaves open, as vectors over nodes."""

from typing import NamedTuple

import numpy as np

from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import WHOLE_CARD_PERCENT
from gpupool.engine.columns import Bools, Columns
from gpupool.engine.node_state import NodeState
from gpupool.engine.policies.policy import Ints, of_nodes


def open_cards(choice: CardChoice, columns: Columns, nodes: Ints) -> Bools:
    """(C, len(nodes)): whether the pod accepts the card. False where there is no card."""
    # Number 0: no card.
    takes = np.array([False, *map(choice.takes_model, columns.card_models)], dtype=np.bool_)
    found: Bools = takes[of_nodes(columns.card_model, nodes)]
    if choice.uuids or choice.avoided_uuids:
        keys = of_nodes(columns.card_key, nodes)
        if choice.uuids:
            found &= np.isin(keys, _keys(choice.uuids))
        if choice.avoided_uuids:
            found &= ~np.isin(keys, _keys(choice.avoided_uuids))
    return found


class OpenColumns(NamedTuple):
    """What policies read, of some nodes: cards that the pod does not accept are not there."""

    card_free: Ints
    card_total: Ints
    card_compute: Ints
    cpu_free: Ints
    host_free: Ints
    model: Ints
    bulk: Ints
    view: None = None  # the kernel knows all cards


def open_columns(choice: CardChoice, columns: Columns, nodes: Ints) -> OpenColumns:
    """Without this, a node would be ranked by cards that the pod cannot get."""
    is_open = open_cards(choice, columns, nodes)
    return OpenColumns(
        np.where(is_open, of_nodes(columns.card_free, nodes), 0),
        np.where(is_open, of_nodes(columns.card_total, nodes), 1),
        np.where(is_open, of_nodes(columns.card_compute, nodes), 0),
        columns.cpu_free.take(nodes),
        of_nodes(columns.host_free, nodes),
        columns.model.take(nodes),
        columns.bulk.take(nodes),
    )


def untouched_cards(columns: Columns, nodes: Ints) -> Bools:
    """(C, len(nodes)): cards of which nothing is held, as `CardState.is_untouched`."""
    free = of_nodes(columns.card_free, nodes)
    compute = of_nodes(columns.card_compute, nodes)
    return np.asarray(
        (free == of_nodes(columns.card_total, nodes)) & (compute == WHOLE_CARD_PERCENT)
    )


def unwanted_rows(choice: CardChoice, state: NodeState) -> frozenset[int]:
    """Rows of the node's cards that the pod does not accept."""
    return frozenset(row for row, card in enumerate(state.cards) if not choice.takes(card.card))


def _keys(uuids: tuple[str, ...]) -> Ints:
    return np.array([hash(uuid) for uuid in uuids], dtype=np.int64)
