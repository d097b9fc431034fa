"""Readings for tables of cards, and notes about the nodes of which there are none."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gpupool.core.readings import CardReading
from gpupool.readings import Readings, read_nodes

if TYPE_CHECKING:
    from kubeclient.client import Kube

_FRESH_S = 2.0  # --watch draws the table anew with every change of a node
_MOST_NOTES = 5
_NAMED = 3


class CardReadings:
    def __init__(self, namespace: str, say: Callable[[str], None]) -> None:
        """`namespace`: that of the agents. `say` gets each note once."""
        self._namespace = namespace
        self._say = say
        self._said: set[str] = set()
        self._last: Readings | None = None
        self._asked: frozenset[str] = frozenset()
        self._read_s = 0.0

    async def by_card(self, kube: "Kube", nodes: frozenset[str]) -> Mapping[str, CardReading]:
        """Of the nodes that answer, by uuid of the card."""
        is_old = time.monotonic() - self._read_s > _FRESH_S
        if self._last is None or is_old or nodes != self._asked:
            self._last = await read_nodes(kube, nodes, self._namespace)
            self._asked, self._read_s = nodes, time.monotonic()
            for note in notes(self._last.problems):
                if note not in self._said:
                    self._said.add(note)
                    self._say(note)
        return self._last.cards()


def notes(problems: Mapping[str, str]) -> list[str]:
    """A line for each problem, with some of the nodes that have it."""
    by_problem: dict[str, list[str]] = {}
    for node, problem in sorted(problems.items()):
        by_problem.setdefault(problem, []).append(node)
    # What most nodes have goes first.
    lines = sorted(by_problem.items(), key=lambda each: -len(each[1]))
    shown = [f"No readings of {_listed(nodes)}: {problem}." for problem, nodes in lines]
    if len(shown) <= _MOST_NOTES:
        return shown
    rest = sum(len(nodes) for _, nodes in lines[_MOST_NOTES:])
    return [*shown[:_MOST_NOTES], f"No readings of {rest} more nodes, for other reasons."]


def _listed(nodes: list[str]) -> str:
    if len(nodes) == 1:
        return f"node {nodes[0]}"
    named = ", ".join(nodes[:_NAMED])
    more = f" and {len(nodes) - _NAMED} others" if len(nodes) > _NAMED else ""
    return f"{len(nodes)} nodes ({named}{more})"
