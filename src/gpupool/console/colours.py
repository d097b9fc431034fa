"""Colours of the map: by namespace, by node pool, or by what is really used. Pure.

A colour is the name of a class (`static/map.css`), so that the boxes of the detailed map and the
squares of the heat view have the same ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32

from gpupool.console.gpus import NodeView, Part
from gpupool.console.words import Translate, word

SLOTS = 10
UNKNOWN = "use-unknown"
IDLE, OVER = "use0", "use5"
# The class, and what a share of that class does.
USES: Mapping[str, str] = {
    IDLE: word("uses nothing"),
    "use1": word("uses up to a quarter"),
    "use2": word("up to a half"),
    "use3": word("up to three quarters"),
    "use4": word("up to all of its share"),
    OVER: word("more than its share"),
    UNKNOWN: word("not known"),
}
_MOST_IN_LEGEND = 12


class By(StrEnum):
    NAMESPACE = "namespace"
    POOL = "pool"
    USE = "use"


@dataclass(frozen=True, slots=True)
class Palette:
    by: By
    slots: Mapping[str, int]  # of namespaces or pools

    def of(self, node: NodeView, part: Part, used_percent: int | None) -> str:
        if self.by is By.USE:
            return use_class(used_percent)
        return f"c{self.slots.get(node.pool if self.by is By.POOL else part.namespace, 0)}"

    def legend(self, t: Translate) -> list[tuple[str, str]]:
        """Class and words of each colour."""
        if self.by is By.USE:
            return [(name, t(words)) for name, words in USES.items()]
        names = sorted(self.slots)[:_MOST_IN_LEGEND]
        found = [(f"c{self.slots[name]}", name or t("no node pool")) for name in names]
        rest = len(self.slots) - len(names)
        return [*found, ("", t("… and {count} more", count=rest))] if rest else found


def by_of(text: str) -> By:
    return By(text) if text in list(By) else By.NAMESPACE


def palette(by: By, nodes: Iterable[NodeView]) -> Palette:
    if by is By.USE:
        return Palette(by, {})
    if by is By.POOL:
        return Palette(by, slots_of({node.pool for node in nodes}))
    return Palette(by, slots_of(frozenset[str]().union(*(node.namespaces for node in nodes))))


def slots_of(names: Iterable[str]) -> dict[str, int]:
    """A colour for each name. It follows from the name, so it stays when others come and go; two
    names share one only when there are more names than colours, or when one must make room."""
    found: dict[str, int] = {}
    for name in sorted(names):
        slot = crc32(name.encode()) % SLOTS
        taken = set(found.values())
        if len(taken) < SLOTS:
            while slot in taken:
                slot = (slot + 1) % SLOTS
        found[name] = slot
    return found


def use_class(percent: int | None) -> str:
    """`percent`: of its share; None: nobody knows."""
    if percent is None:
        return UNKNOWN
    if percent > 100:
        return OVER
    return f"use{-(-percent // 25)}"
