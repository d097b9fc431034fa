"""ClusterModel: all nodes and what pods hold of them; every decision is made from it.

    set_node, remove_node        what the nodes offer
    hold, release                what pods hold of them; both are idempotent
    reserve, unreserve           room that is kept for pods that are not there yet
    set_namespace                for pod affinity by labels of namespaces

Nothing here refuses a hold: it is a fact that the API has shown, or a decision that was checked
before. A pod on a node that does not exist, or on a card that is gone, stays held, and counts again
when the node comes back (`discrepancies.py` lists such pods). `version` rises with every change.
"""

from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from gpupool.core.gpu import Allocation
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.card_holds import CardHold, card_holds
from gpupool.engine.columns import Columns
from gpupool.engine.kinds import KindCounts
from gpupool.engine.label_columns import LabelColumns
from gpupool.engine.node_state import (
    Held,
    NodeState,
    clear_node,
    replace_node,
)
from gpupool.engine.pod_index import Finder, PodIndex
from gpupool.engine.policies.policy import Ints
from gpupool.engine.policies.scarcity import MOST_MACHINES
from gpupool.engine.shapes import Shape, Shapes
from gpupool.engine.verdict_cache import ChangeLog, ShapeVerdict
from kubeclient.placement import Taint

if TYPE_CHECKING:  # imports this module
    from gpupool.engine.allowed_nodes import AllowedNodes

NO_GPUS = Allocation()
# Different GPU models that have a number of their own: policies make tables by model.
MOST_MODELS = 256
MOST_PLACED = 1_024
_SPARE_SETS = 64  # sets of taints that no node has any more, beside as many as there are nodes


class ClusterModel:
    def __init__(self, compiled: bool = True) -> None:
        """`compiled`: with `kernel.py`, where it was built. Decisions are the same without."""
        self.columns = Columns(compiled)
        self.changes = ChangeLog()  # nodes that changed, or what is held on them
        self.node_changes = ChangeLog()  # nodes that changed themselves
        self.shapes = Shapes()
        # By the name of a policy: see `verdicts.py`.
        self.verdicts: dict[tuple[str, Shape], ShapeVerdict] = {}
        self.allowed: dict[Hashable, AllowedNodes] = {}  # see `allowed_nodes.py`
        self._largest_card = (-1, 0)  # position of `node_changes`, and the card
        self.models: dict[str, int] = {}  # the number of each GPU model in the columns
        # Classes of machines, by model, `bulk_of` and mode: the number of each in the columns.
        self.machines: dict[tuple[int, int, int], int] = {}
        self.running = KindCounts()  # pods with GPUs that are held, of each kind
        # Their uids, since `refusals.py` looked last; the newest if there are too many.
        self.placed: deque[str] = deque(maxlen=MOST_PLACED)
        # By their number in the columns. Autoscalers write times into taints, so sets that no node
        # has any more are dropped.
        self.taint_sets: list[tuple[Taint, ...]] = []
        self._taint_numbers: dict[tuple[Taint, ...], int] = {}
        self.reserved: set[str] = set()  # uids of pods for which room is kept
        self._index = PodIndex(self.columns.size)
        self._labels = LabelColumns()
        self._nodes: dict[str, NodeState] = {}
        self._by_index: list[NodeState | None] = []
        self._indexes: dict[str, int] = {}  # of the nodes, by name
        self._vacant: list[int] = []  # free indexes, a heap: the lowest is used first
        self._place: dict[str, str] = {}  # uid -> name of the node
        self._lost: dict[str, dict[str, Held]] = {}  # on nodes that do not exist
        self.groups: dict[tuple[str, str], dict[str, str]] = {}  # card groups: uid -> node

    @property
    def version(self) -> int:
        return self.changes.position

    def __len__(self) -> int:
        return len(self._nodes)

    # -- nodes -----------------------------------------------------------------------------

    def set_node(self, node: NodeInfo) -> None:
        state = self._nodes.get(node.name)
        if state is None:
            state = self._new_state(node)
        # Heartbeats change node objects all the time. Without an entry in the logs all cached
        # verdicts stay valid.
        elif state.node == node:
            return
        replace_node(state, node, self.columns)
        # After `replace_node`, which makes room in the columns.
        self._grow()
        self._set_taints(state)
        if node.inventory and node.inventory.cards:
            model = self._model(node.inventory.cards[0].model)
            self.columns.model[state.index] = model
            self.columns.machine[state.index] = self._machine(model, state.index)
        self._labels.set_node(state.index, node.labels)
        self._changed(state.index)
        for held in self._lost.pop(node.name, {}).values():
            self._take(held)

    def remove_node(self, name: str) -> None:
        state = self._nodes.get(name)
        if state is None:
            return
        # The pods still hold their place: `_place` keeps them, and they count again when the node
        # is back.
        lost = {uid: self._give_back(uid, state) for uid in list(state.pods)}
        if lost:
            self._lost[name] = lost
        clear_node(state, self.columns)
        self._labels.set_node(state.index, {})
        del self._nodes[name], self._indexes[name]
        self._by_index[state.index] = None
        heappush(self._vacant, state.index)
        # Before the index is used again: verdicts must not show the costs of the old node.
        self._changed(state.index)

    def _model(self, model: str) -> int:
        if model not in self.models and len(self.models) >= MOST_MODELS:
            model = ""  # one number for all further models
        return self.models.setdefault(model, len(self.models))

    def _machine(self, model: int, index: int) -> int:
        key = (model, int(self.columns.bulk[index]), int(self.columns.mode[index]))
        if key not in self.machines and len(self.machines) >= MOST_MACHINES:
            # The class that is most like it.
            key = min(
                self.machines, key=lambda k: (k[0] != model, k[2] != key[2], abs(k[1] - key[1]))
            )
        return self.machines.setdefault(key, len(self.machines))

    def _set_taints(self, state: NodeState) -> None:
        if len(self.taint_sets) > 2 * len(self._nodes) + _SPARE_SETS:
            self.taint_sets, self._taint_numbers = [], {}
            self.columns.taints[:] = 0
            for each in self._nodes.values():
                self._number_taints(each)
        self._number_taints(state)

    def _number_taints(self, state: NodeState) -> None:
        taints = state.node.taints
        number = self._taint_numbers.setdefault(taints, len(self.taint_sets))
        if number == len(self.taint_sets):
            self.taint_sets.append(taints)
        self.columns.taints[state.index] = number

    def _new_state(self, node: NodeInfo) -> NodeState:
        if self._vacant:
            index = heappop(self._vacant)
        else:
            index = len(self._by_index)
            self._by_index.append(None)
        state = NodeState(index, node)
        self._by_index[index] = self._nodes[node.name] = state
        self._indexes[node.name] = index
        return state

    def _grow(self) -> None:
        if self.columns.size > self._index.size:
            self._index.grow(self.columns.size)
            self._labels.grow(self.columns.size)
            # Their vectors have the old length.
            self.verdicts.clear()
            self.allowed.clear()

    def _changed(self, index: int) -> None:
        self.changes.append(index)
        self.node_changes.append(index)

    # -- pods ------------------------------------------------------------------------------

    def hold(self, pod: PodRequest, node: str, allocation: Allocation = NO_GPUS) -> None:
        """The pod holds this from now on. Replaces an earlier hold of the same pod."""
        place = self._place.get(pod.uid)
        if place is not None:
            known = self.held(pod.uid)
            # A relist reports every pod again: without a change no verdict becomes stale.
            if known and place == node and known.pod == pod and known.allocation == allocation:
                return
        shape, cards = self.shapes.of(pod), _cards(pod, allocation)
        if place is not None:  # after all that could go wrong: something must be held
            self.release(pod.uid)
        kind = shape.kind if pod.gpus else None
        self._take(Held(pod, node, allocation, cards, shape, False, kind))

    def reserve(
        self, pod: PodRequest, node: str, allocation: Allocation, leaving: Collection[str] = ()
    ) -> None:
        """Keep this room for the pod until `unreserve`. Replaces an earlier reservation.

        `leaving`: uids of pods whose room is for this pod alone. What they still hold is not
        reserved a second time; when one has gone, the caller reserves again.
        """
        self.unreserve(pod.uid)
        self.reserved.add(pod.uid)
        found = (self.held(uid) for uid in leaving)
        before = [held for held in found if held is not None and held.node == node]
        cards, kept = _cards(pod, allocation), replace(pod, uid=reserved_uid(pod.uid))
        if before:
            kept = replace(kept, resources=_beyond(pod, before))
            cards = tuple(_card_beyond(hold, before) for hold in cards)
        self._take(Held(kept, node, allocation, cards, self.shapes.of(kept), reserved=True))

    def unreserve(self, uid: str) -> bool:
        """Whether anything was reserved for the pod with this uid."""
        self.reserved.discard(uid)
        return self.release(reserved_uid(uid))

    def take_again(self, held: Held) -> None:
        """Undo a release."""
        self._take(held)

    def release(self, uid: str) -> bool:
        """Whether anything was held."""
        node = self._place.pop(uid, None)
        if node is None:
            return False
        state = self._nodes.get(node)
        if state is not None:
            self._give_back(uid, state)
        else:
            lost = self._lost[node]
            del lost[uid]
            if not lost:
                del self._lost[node]
        return True

    def _take(self, held: Held) -> None:
        pod = held.pod
        self._place[pod.uid] = held.node
        state = self._nodes.get(held.node)
        if state is None:
            self._lost.setdefault(held.node, {})[pod.uid] = held
            return
        state.take(held, self.columns)
        self._index.count(pod, state.index, 1)
        if held.kind is not None:
            self.running.add(held.kind)
            self.placed.append(pod.uid)
        if pod.same_card or pod.different_card:
            for group in _card_groups(pod):
                self.groups.setdefault(group, {})[pod.uid] = held.node
        self.changes.append(state.index)

    def _give_back(self, uid: str, state: NodeState) -> Held:
        held = state.give_back(uid, self.columns)
        pod = held.pod
        self._index.count(pod, state.index, -1)
        if held.kind is not None:
            self.running.remove(held.kind)
        if pod.same_card or pod.different_card:
            for group in _card_groups(pod):
                del self.groups[group][uid]
                if not self.groups[group]:
                    del self.groups[group]
        self.changes.append(state.index)
        return held

    # -- questions -------------------------------------------------------------------------

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """None: the namespace is gone."""
        self._index.set_namespace(name, labels)

    @property
    def index(self) -> PodIndex:
        return self._index

    def state(self, name: str) -> NodeState | None:
        return self._nodes.get(name)

    def indexes(self, names: Sequence[str]) -> Ints:
        """The index of each node; -1: unknown node."""
        found = map(self._indexes.get, names, repeat(-1))
        return np.fromiter(found, dtype=np.intp, count=len(names))

    def at(self, index: int) -> NodeState:
        state = self._by_index[index]
        assert state is not None
        return state

    def largest_card(self) -> int:
        """The units of the largest card; 1: there is none."""
        position = self.node_changes.position
        if self._largest_card[0] != position:
            self._largest_card = (position, int(self.columns.card_total.max()))
        return self._largest_card[1]

    def all_nodes(self) -> Ints:
        """The indexes of all nodes, in order."""
        return np.flatnonzero(self.columns.present)

    def held(self, uid: str) -> Held | None:
        node = self._place.get(uid)
        if node is None:
            return None
        state = self._nodes.get(node)
        return state.pods[uid] if state else self._lost[node][uid]

    def holds(self) -> Iterator[Held]:
        """All holds, also those on nodes that do not exist."""
        for state in self._nodes.values():
            yield from state.pods.values()
        for lost in self._lost.values():
            yield from lost.values()

    def label(self, key: str) -> Ints:
        """For every node the number of the label's value; 0: no such label."""
        labels = ((state.index, state.node.labels) for state in self._nodes.values())
        return self._labels.column(key, labels, self.columns.size)

    def label_numbers(self, key: str) -> Mapping[str, int]:
        self.label(key)
        return self._labels.numbers(key)

    def found(self, finder: Finder) -> Ints:
        """For every node the number of held pods that the finder matches."""
        pods = (
            (state.index, held.pod)
            for state in self._nodes.values()
            for held in state.pods.values()
        )
        return self._index.found(finder, pods)


def reserved_uid(uid: str) -> str:
    """A uid of its own: the end of a reservation must not release what the pod itself holds."""
    return f"reserved/{uid}"


def _cards(pod: PodRequest, allocation: Allocation) -> tuple[CardHold, ...]:
    return card_holds(pod, allocation) if allocation.containers else ()


def _beyond(pod: PodRequest, before: Sequence[Held]) -> Mapping[str, int]:
    """What the pod needs beyond what those before it hold."""
    return {
        name: max(0, amount - sum(held.pod.resources.get(name, 0) for held in before))
        for name, amount in pod.resources.items()
    }


def _card_beyond(hold: CardHold, before: Sequence[Held]) -> CardHold:
    same = [h for held in before for h in held.cards if h.uuid == hold.uuid]
    if any(h.whole or h.possible for h in same):  # it closes the card for all others
        return replace(hold, units=0, percent=0)
    return replace(
        hold,
        units=max(0, hold.units - sum(h.units for h in same)),
        percent=max(0, hold.percent - sum(h.percent for h in same)),
    )


def same_cards(pod: PodRequest) -> tuple[str, str]:
    """The key of a same-card group. The prefix keeps it apart from different-card groups."""
    return (pod.namespace, f"same/{pod.same_card}")


def different_cards(pod: PodRequest) -> tuple[str, str]:
    return (pod.namespace, f"different/{pod.different_card}")


def _card_groups(pod: PodRequest) -> list[tuple[str, str]]:
    found = []
    if pod.same_card:
        found.append(same_cards(pod))
    if pod.different_card:
        found.append(different_cards(pod))
    return found
