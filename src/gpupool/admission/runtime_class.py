"""Which runtime class a GPU pod gets that names none. Pure.

A class is fixed when the pod is created, and its node is chosen later. So the class must suit as
many cards as possible of those that the pod may come to; the scheduler keeps it off the others.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gpupool.core.nodes import NodeInfo
from gpupool.core.ways import Way


class ClassChoice(NamedTuple):
    name: str = ""  # empty: the pod needs none
    left_out: tuple[str, ...] = ()  # nodes that the pod could run on if it chose otherwise


def class_choice(nodes: Iterable[NodeInfo], otherwise: str = "") -> ClassChoice:
    """`nodes`: those with cards that the pod may come to. `otherwise`: while there are none."""
    known = list(nodes)
    if not known:
        return ClassChoice(otherwise)
    # No class first: among equals, the pod is left as it is.
    cards = Counter({name: _cards(known, name) for name in ("", *_needed(known))})
    ((best, _),) = cards.most_common(1)
    left_out = tuple(node.name for node in known if not _suits(node, best))
    return ClassChoice(best, left_out)


def _needed(nodes: Iterable[NodeInfo]) -> list[str]:
    """The classes that some node needs, by name."""
    found = (node.inventory.ways for node in nodes if node.inventory is not None)
    return sorted({w.runtime_class for w in found if w and w.chosen is Way.RUNTIME_CLASS})


def _cards(nodes: Iterable[NodeInfo], name: str) -> int:
    """How many cards a pod of this class can get, whatever is in use now."""
    return sum(len(n.inventory.cards) for n in nodes if n.inventory and _suits(n, name))


def _suits(node: NodeInfo, name: str) -> bool:
    ways = node.inventory.ways if node.inventory is not None else None
    if name and (ways is None or ways.runtime_class != name):
        return False  # nobody knows whether the node has this class
    return ways is None or ways.suits(name)
