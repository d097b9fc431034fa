"""growth: how many further nodes of which pools let waiting pods start. Pure.

Pods are placed one by one by the same engine that schedules them: on nodes that exist first, then
on further nodes, of the smallest machine that takes the pod. Pods of a group count together: if too
few of them would start, no node is added for them. Room that is kept for those that will not start
is not for the others, as in the scheduler.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide, decide_on
from gpupool.engine.future_room import Place
from gpupool.engine.likeness import likeness
from gpupool.engine.node_state import Held
from gpupool.engine.policies.policy import Policy
from gpupool.engine.reservations import Reservations
from kubeclient.names import LABEL_HOSTNAME


class Together(NamedTuple):
    """Waiting pods that start together, or one pod."""

    pods: tuple[PodRequest, ...]
    least: int = 1  # how many of them must start
    kept: tuple[Place, ...] = ()  # where room is kept for them


@dataclass(frozen=True, slots=True)
class GrowingPool:
    name: str
    node: NodeInfo  # a further node as it will be, with its cards
    more: int  # so many nodes may be added

    @property
    def size(self) -> tuple[int, int, int]:
        """Of one node. Nobody tells us prices; cards cost the most."""
        inventory, offered = self.node.inventory, self.node.allocatable
        cards = inventory.cards if inventory else ()
        card_mib = sum(card.memory_mib for card in cards)
        return card_mib, offered.get("cpu", 0), offered.get("memory", 0)


class Growth(NamedTuple):
    further: Counter[str]  # nodes, by pool
    placed: Mapping[str, str]  # uid of a waiting pod that will start -> its node
    kept: frozenset[str] = frozenset()  # nodes with room that is kept for others that wait

    @property
    def used(self) -> frozenset[str]:
        """Nodes on which waiting pods will start, now or later."""
        return self.kept.union(self.placed.values())


def growth(
    pools: Iterable[GrowingPool],
    room: ClusterModel,
    waiting: Iterable[Together],
    policy: Policy,
    most: int,
) -> Growth:
    """At most `most` further nodes in all. Changes `room`: afterwards it has them."""
    smallest_first = sorted(pools, key=lambda pool: (pool.size, pool.name))
    growing = _Growing(room, smallest_first, policy, most)
    for together in waiting:
        growing.take(together)
    return Growth(growing.added, growing.placed, frozenset(growing.kept))


def shrink_again(room: ClusterModel, grown: Growth) -> None:
    """Undo what `growth` did to `room`."""
    for uid in grown.placed:
        room.release(uid)
    for pool, count in grown.further.items():
        for number in range(count):
            room.remove_node(_name(pool, number))


def _unknown(_held: Held, _of: int) -> float:
    """When a pod ends: that it has to is enough."""
    return 0.0


def _name(pool: str, number: int) -> str:
    return f"more/{pool}/{number}"  # "/": no node has such a name


class _Growing:
    def __init__(
        self, room: ClusterModel, pools: Sequence[GrowingPool], policy: Policy, most: int
    ) -> None:
        self.added: Counter[str] = Counter()
        self.placed: dict[str, str] = {}  # uid of a pod -> its node
        self.kept: set[str] = set()
        self._room = room
        self._reservations = Reservations(room)
        self._pools = pools
        self._policy = policy
        self._most = most
        # Likenesses of pods for which there is no room as it is now: thousands of pods may wait
        # that no pool can take, and the whole cluster waits for us.
        self._hopeless: set[Hashable] = set()

    def take(self, together: Together) -> None:
        """Makes room for them, or changes nothing but what is kept for them."""
        undo: list[Callable[[], object]] = []
        placed = sum(self._place(pod, undo) for pod in together.pods)
        if placed < together.least:
            if undo:
                self._hopeless.clear()
            while undo:
                undo.pop()()
            for each in self._reservations.restore(together.kept, self._policy, _unknown, 0.0):
                self.kept |= each.nodes()

    def _place(self, pod: PodRequest, undo: list[Callable[[], object]]) -> bool:
        alike = likeness(self._room, pod)
        if alike in self._hopeless:
            return False
        found = decide(self._room, pod, self._policy)
        if not isinstance(found, Placement):
            grown = self._grow(pod, undo)
            if grown is None:
                self._hopeless.add(alike)
                return False
            found = grown
        self._room.hold(pod, found.node, found.allocation)
        self._hopeless.clear()  # it may be what others want to be near to
        self.placed[pod.uid] = found.node
        undo.append(lambda: self._take_back(pod))
        return True

    def _take_back(self, pod: PodRequest) -> None:
        self._room.release(pod.uid)
        del self.placed[pod.uid]

    def _grow(self, pod: PodRequest, undo: list[Callable[[], object]]) -> Placement | None:
        for pool in self._pools:
            if self.added[pool.name] >= pool.more or self.added.total() >= self._most:
                continue
            name = _name(pool.name, self.added[pool.name])
            self._room.set_node(named(pool.node, name))
            found = decide_on(self._room, pod, self._policy, (name,))
            if isinstance(found, Placement):
                self.added[pool.name] += 1
                undo.append(lambda pool=pool, name=name: self._remove(pool, name))  # type: ignore[misc]
                return found
            self._room.remove_node(name)
        return None

    def _remove(self, pool: GrowingPool, name: str) -> None:
        self._room.remove_node(name)
        self.added[pool.name] -= 1


def named(node: NodeInfo, name: str) -> NodeInfo:
    """The same node with another name."""
    return replace(node, name=name, labels={**node.labels, LABEL_HOSTNAME: name})
