"""The exact format of `kubectl inspect gpushare`, because scripts parse it; and JSON. Pure.

Columns are aligned as Go's tabwriter does it. There are as many dashes as a row has bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

UNKNOWN = "unknown"
_UNKNOWN_CARD = -1  # for pods that ask for GPU memory, but whose card is not known


@dataclass(frozen=True, slots=True)
class PodView:
    name: str
    namespace: str
    units: dict[int, int]  # by the index of the card
    isolation: str = UNKNOWN  # in documents only: the text is gpushare's


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    address: str
    cards: dict[int, int]  # index -> units
    pods: tuple[PodView, ...]
    unit_mib: int = 1024

    @property
    def total(self) -> int:
        return sum(self.cards.values())

    def used(self, card: int) -> int:
        return sum(pod.units.get(card, 0) for pod in self.pods)

    @property
    def all_used(self) -> int:
        return sum(sum(pod.units.values()) for pod in self.pods)


def summary(nodes: Sequence[NodeView], unit: str) -> str:
    count = _most_cards(nodes)
    waits = any(node.used(_UNKNOWN_CARD) for node in nodes)
    head = ["NAME", "IPADDRESS", *(f"GPU{i}(Allocated/Total)" for i in range(count))]
    head += [*(["PENDING(Allocated)"] if waits else []), f"GPU Memory({unit})"]
    rows = []
    for node in nodes:
        row = [node.name, node.address]
        row += [f"{node.used(i)}/{node.cards.get(i, 0)}" for i in range(count)]
        row += [str(node.used(_UNKNOWN_CARD) or "")] if waits else []
        rows.append([*row, f"{node.all_used}/{node.total}"])
    dashes = "-" * (_bytes(rows[0]) + 20) if rows else ""
    return "\n".join(
        [
            *_aligned([head, *rows]),
            dashes,
            "Allocated/Total GPU Memory In Cluster:",
            _in_all(nodes),
            "",
        ]
    )


def details(nodes: Sequence[NodeView]) -> str:
    parts = [_node_details(node) for node in nodes]
    dashes = "-" * (_pod_bytes(nodes[0]) + 10) if nodes else ""
    text = "".join(f"\n{part}{dashes}\n\n" for part in parts)
    return f"{text}\nAllocated/Total GPU Memory In Cluster:  {_in_all(nodes)}\n"


def fields_of(node: NodeView) -> dict[str, Any]:
    """The same for programs, with the names of docs/output.md."""
    return {
        "node": node.name,
        "address": node.address,
        "unitMiB": node.unit_mib,
        "totalUnits": node.total,
        "allocatedUnits": node.all_used,
        "pendingUnits": node.used(_UNKNOWN_CARD),
        "cards": [
            {"index": index, "totalUnits": units, "allocatedUnits": node.used(index)}
            for index, units in sorted(node.cards.items())
        ],
        "pods": [_pod_fields(pod) for pod in node.pods],
    }


def _pod_fields(pod: PodView) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "isolation": pod.isolation,
        "pendingUnits": pod.units.get(_UNKNOWN_CARD, 0),
        "cards": [
            {"index": index, "allocatedUnits": units}
            for index, units in sorted(pod.units.items())
            if index != _UNKNOWN_CARD
        ],
    }


def _node_details(node: NodeView) -> str:
    indexes = sorted(node.cards)
    waits = bool(node.used(_UNKNOWN_CARD))
    head = ["NAME", "NAMESPACE", *(f"GPU{i}(Allocated)" for i in indexes)]
    head += ["Pending(Allocated)"] if waits else []
    rows = [_pod_row(pod, node, waits) for pod in node.pods]
    percent = 100 * node.all_used // node.total if node.total else 0
    foot = [["Allocated :", f"{node.all_used} ({percent}%)"], ["Total :", str(node.total)]]
    above = _aligned([["NAME:", node.name], ["IPADDRESS:", node.address]])
    return "\n".join([*above, "", *_aligned([head, *rows, *foot]), ""])


def _pod_row(pod: PodView, node: NodeView, waits: bool) -> list[str]:
    cells = [pod.name, pod.namespace, *(str(pod.units.get(i, 0)) for i in sorted(node.cards))]
    return [*cells, str(pod.units.get(_UNKNOWN_CARD, 0))] if waits else cells


def _pod_bytes(node: NodeView) -> int:
    waits = bool(node.used(_UNKNOWN_CARD))
    return sum(_bytes([*_pod_row(pod, node, waits), ""]) for pod in node.pods)


def _most_cards(nodes: Iterable[NodeView]) -> int:
    return max((max(node.cards, default=-1) + 1 for node in nodes), default=0)


def _in_all(nodes: Sequence[NodeView]) -> str:
    used, total = sum(n.all_used for n in nodes), sum(n.total for n in nodes)
    return f"{used}/{total} ({100 * used // total if total else 0}%)"


def _bytes(row: Sequence[str]) -> int:
    """The length of a row with a tab between two cells, and a newline."""
    return len("\t".join(row).encode()) + 1


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Each column is as wide as its widest cell plus two blanks. The last cell of a row is not
    padded, and does not count for the width."""
    columns = max(map(len, rows))
    widths = [
        max((len(row[i]) for row in rows if i < len(row) - 1), default=0) for i in range(columns)
    ]
    return [
        "".join(cell.ljust(widths[i] + 2) for i, cell in enumerate(row[:-1])) + row[-1]
        for row in rows
    ]
