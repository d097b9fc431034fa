"""allocation_on: which cards of a node each container of a pod gets, or None if they do not fit.

Containers that run together share what is free; an init container runs before them and may use the
same cards. For one share the policy chooses the card. Whole cards are chosen by their NVLinks where
the node has such links, else the first free ones are taken. Several containers with GPUs are placed
by an exact search over the node's cards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from gpupool.core.gpu import Allocation, CardPlacement, ContainerGpus, GpuAsk, Isolation, Wall
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.core.ways import Way
from gpupool.engine.cluster import ClusterModel, different_cards, same_cards
from gpupool.engine.links import nearest_cards
from gpupool.engine.node_state import NodeState
from gpupool.engine.open_cards import unwanted_rows
from gpupool.engine.policies.policy import Ask, Policy

NO_GPUS = Allocation()
NONE_CLOSED: frozenset[int] = frozenset()
# A pod that needs more steps is refused on that node: the search is exponential, and one pod must
# not stop the scheduler.
_MOST_STEPS = 20_000
# Members of an enum are slow to find, and this runs for every decision.
_WHOLE, _LIMITED, _UNISOLATED = Isolation.WHOLE, Isolation.LIMIT, Isolation.NONE
_BY_DRIVER = Wall.DRIVER

Chosen = dict[str, tuple[int, ...]]  # container -> rows of its cards


@dataclass(slots=True)
class _Room:
    """What is free of each card, while containers are tried on them."""

    free: list[int]
    compute: list[int]
    whole: list[bool]
    open: list[bool]  # whether the pod may use the card at all
    spread: bool
    steps: int = 0

    def rows_for(self, ask: GpuAsk) -> list[int]:
        """Best first."""
        fitting = [
            row
            for row, free in enumerate(self.free)
            if self.open[row] and free >= ask.units and self.compute[row] >= ask.percent
        ]
        return sorted(fitting, key=lambda row: -self.free[row] if self.spread else self.free[row])

    def untouched(self) -> list[int]:
        return [row for row, whole in enumerate(self.whole) if whole and self.open[row]]


def allocation_on(
    cluster: ClusterModel,
    pod: PodRequest,
    state: NodeState,
    policy: Policy,
    ask: Ask,
    closed: frozenset[int] = NONE_CLOSED,
) -> Allocation | None:
    """`closed`: rows of cards that this pod may not use."""
    if not pod.gpus:
        return NO_GPUS
    placement = pod.card_placement or state.node.card_placement
    if len(pod.gpus) == 1 and not closed:
        only = pod.gpus[0]
        rows: tuple[int, ...] = ()
        if only.whole and not state.has_links:
            rows = tuple(state.untouched()[: only.whole])
        elif only.units and placement is None:
            rows = policy.cards(cluster.columns, ask, state.index)
        # Empty: NVLinks or a card placement decide, so the search below is needed. The filters have
        # passed this node, so too few cards are an error in the policy.
        if rows:
            assert len(rows) == (only.whole or only.cards), f"{policy.name} gave cards {rows}"
            if len(rows) > 1:
                return Allocation((_container(only, rows, state),))
            return allocation_of_one(only, state, rows[0])
    room = _room(state, closed, placement is CardPlacement.SPREAD)
    chosen = _search([each for each in pod.gpus if not each.is_init], room, state)
    if chosen is None or not _choose_init(pod, state, closed, chosen):
        return None
    return Allocation(tuple(_container(a, chosen[a.container], state) for a in pod.gpus))


def allocation_of_one(ask: GpuAsk, state: NodeState, row: int) -> Allocation:
    """For a pod that asks for one card or a share of one, and nothing else."""
    return state.cards[row].alone(ask, lambda: Allocation((_container(ask, (row,), state),)))


def _room(state: NodeState, closed: frozenset[int], spread: bool) -> _Room:
    return _Room(
        [card.free for card in state.cards],
        [card.compute for card in state.cards],
        [card.is_untouched for card in state.cards],
        [row not in closed for row in range(len(state.cards))],
        spread,
    )


def _search(asks: Sequence[GpuAsk], room: _Room, state: NodeState) -> Chosen | None:
    # Large shares first: a wrong choice is then found early, and the search stays small.
    shares = sorted((a for a in asks if a.units), key=lambda a: (-a.units, -a.percent, -a.cards))
    wholes = sum(ask.whole for ask in asks)
    if not wholes and not shares:
        return {}
    chosen: Chosen = {}
    if not _place_shares(shares, 0, wholes, room, chosen):
        return None
    for ask in asks:
        if ask.whole:
            rows = nearest_cards((c.card for c in state.cards), tuple(room.untouched()), ask.whole)
            chosen[ask.container] = rows
            for row in rows:
                room.whole[row] = False
    return chosen


def _place_shares(
    asks: Sequence[GpuAsk], at: int, wholes: int, room: _Room, chosen: Chosen
) -> bool:
    """Depth-first search. Sets of cards with the same free amounts are tried once."""
    # Shares must leave enough untouched cards for the containers that want whole ones.
    if len(room.untouched()) < wholes:
        return False
    if at == len(asks):
        return True
    ask = asks[at]
    seen = set()
    for rows in combinations(room.rows_for(ask), ask.cards):
        alike = tuple((room.free[r], room.compute[r], room.whole[r]) for r in rows)
        # Counted also for sets that are skipped: to make them takes time as well.
        room.steps += 1
        if alike in seen:
            continue
        if room.steps > _MOST_STEPS:
            return False
        seen.add(alike)
        before = [(row, room.whole[row]) for row in rows]
        for row in rows:
            room.free[row] -= ask.units
            room.compute[row] -= ask.percent
            room.whole[row] = False
        if _place_shares(asks, at + 1, wholes, room, chosen):
            chosen[ask.container] = rows
            return True
        for row, whole in before:
            room.free[row] += ask.units
            room.compute[row] += ask.percent
            room.whole[row] = whole
    return False


def _choose_init(pod: PodRequest, state: NodeState, closed: frozenset[int], chosen: Chosen) -> bool:
    """Choose cards for each init container on its own, first those that the pod has anyway."""
    own = {row for rows in chosen.values() for row in rows}
    for ask in pod.gpus:
        if not ask.is_init:
            continue
        # For each of them all that is free, also what the other containers get: init containers run
        # alone. What the pod holds is the larger of both (`card_holds`).
        room = _room(state, closed, spread=False)
        fitting = room.untouched() if ask.whole else room.rows_for(ask)
        rows = sorted(fitting, key=lambda row: row not in own)[: ask.whole or ask.cards]
        if len(rows) < (ask.whole or ask.cards):
            return False
        chosen[ask.container] = tuple(rows)
    return True


def _container(ask: GpuAsk, rows: Sequence[int], state: NodeState) -> ContainerGpus:
    all_cards, node = state.cards, state.node
    cards = [all_cards[row] for row in (sorted(rows) if len(rows) > 1 else rows)]
    kind = _cdi_kind(node)
    if ask.whole:
        shares = tuple([card.whole() for card in cards])
        return ContainerGpus(ask.container, shares, _WHOLE, cdi_kind=kind)
    shares = tuple([card.share(ask.units, ask.percent) for card in cards])
    is_free = not node.isolates or (ask.unisolated and node.grants_unisolated)
    if is_free:
        return ContainerGpus(ask.container, shares, _UNISOLATED, cdi_kind=kind)
    by_driver = node.inventory is not None and node.inventory.wall is _BY_DRIVER
    return ContainerGpus(ask.container, shares, _LIMITED, by_driver, kind)


def _cdi_kind(node: NodeInfo) -> str:
    ways = node.inventory.ways if node.inventory is not None else None
    return ways.cdi_kind if ways is not None and ways.chosen is Way.NVIDIA_NRI else ""


def chooses_cards(pod: PodRequest) -> bool:
    """Whether some cards may be closed to this pod."""
    return bool(pod.card_choice or pod.same_card or pod.different_card)


def closed_cards(pod: PodRequest, cluster: ClusterModel, state: NodeState) -> frozenset[int]:
    """Rows of the cards that its choice of cards, or its card groups, forbid to the pod."""
    closed: set[int] = set()
    if pod.card_choice:
        closed |= unwanted_rows(pod.card_choice, state)
    if pod.different_card:
        closed |= _group_rows(cluster.groups.get(different_cards(pod), {}), state)
    if pod.same_card:
        members = cluster.groups.get(same_cards(pod), {})
        # The first member of a same-card group may use any card.
        if members:
            closed |= set(range(len(state.cards))) - _group_rows(members, state)
    return frozenset(closed)


def _group_rows(members: dict[str, str], state: NodeState) -> set[int]:
    """Rows of the cards of this node on which members of the group hold something."""
    return {
        state.card_rows[hold.uuid]
        for uid, node in members.items()
        if node == state.node.name
        for hold in state.pods[uid].cards
        if hold.uuid in state.card_rows
    }
