"""What the agent counts, as plain values. `metrics_export.py` makes Prometheus samples of them when
asked."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpupool.core.gpu import Inventory
from gpupool.core.readings import NodeReadings
from gpupool.hardware.driver import Xid


@dataclass(slots=True)
class Metrics:
    node: str
    has_driver: bool | None = None  # None before the first look
    inventory: Inventory = field(default_factory=Inventory)
    xids: Counter[Xid] = field(default_factory=Counter)
    # By namespace and name of the pod, and card: MiB in use.
    overuses: dict[tuple[str, str, str], int] = field(default_factory=dict)
    overuses_begun: int = 0
    # By namespace, pod and container.
    without_card: set[tuple[str, str, str]] = field(default_factory=set)
    starts_refused: int = 0  # of containers whose card was missing
    walls: dict[tuple[str, str, str], int] = field(default_factory=dict)  # namespace, pod, wall
    context_mib: int | None = None  # memory of a context; None: not measured

    last_xid: dict[str, int] = field(default_factory=dict)  # by card

    def count_xids(self, xids: Iterable[Xid]) -> None:
        for xid in xids:
            self.xids[xid] += 1
            self.last_xid[xid.uuid] = xid.number

    def text(self, readings: NodeReadings | None = None) -> str:
        """`readings` None: there are none now."""
        from gpupool.agent.metrics_export import AgentCollector
        from gpupool.health import metrics_text

        return metrics_text(AgentCollector(self, readings))
