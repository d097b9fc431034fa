"""Shape: pods that every node and every policy treats alike, whatever their names.

To compare two pods takes long, and for each pod several parts of the engine ask what it is like. So
`Shapes` looks it up once; after that a shape is compared with itself.
"""

from array import array
from collections.abc import Hashable, Mapping
from operator import attrgetter

from gpupool.core.pods import PodRequest
from gpupool.engine.columns import MOST, Columns
from gpupool.engine.kinds import kind_of

_asked = attrgetter("whole", "units", "cards", "percent", "is_init")  # of a GpuAsk
MOST_SHAPES = 8192  # that are known at a time


class Amounts:
    """What a pod takes of a node, by the rows of `Columns.free`."""

    __slots__ = ("_numbers", "address", "count", "names", "rows")

    def __init__(self, resources: Mapping[str, int], columns: Columns) -> None:
        self.names = len(columns.resource_rows)  # those that had a row by then
        found = [(columns.resource_rows.get(name), each) for name, each in resources.items()]
        # Names without a row are skipped: a pod may hold a resource that no node offers.
        found = [(row, max(-MOST, min(each, MOST + 1))) for row, each in found]
        self.rows = [(row, each) for row, each in found if row and each]
        self._numbers = array("q", [number for pair in self.rows for number in pair])
        self.address, self.count = self._numbers.buffer_info()[0], len(self.rows)


class Shape:
    """There is one for all pods that are alike."""

    __slots__ = ("_amounts", "_resources", "kind")

    def __init__(self, pod: PodRequest) -> None:
        self.kind = kind_of(pod)
        self._resources = pod.resources
        self._amounts: Amounts | None = None

    def amounts(self, columns: Columns) -> Amounts:
        found = self._amounts
        if found is None or found.names != len(columns.resource_rows):
            found = self._amounts = Amounts(self._resources, columns)
        return found


class Shapes:
    __slots__ = ("_known", "_last", "_pod")

    def __init__(self) -> None:
        self._known: dict[Hashable, Shape] = {}
        # A pod is counted, decided about and held right after one another.
        self._pod: PodRequest | None = None
        self._last: Shape | None = None

    def of(self, pod: PodRequest) -> Shape:
        if pod is self._pod and self._last is not None:
            return self._last
        key = shape_of(pod)
        shape = self._known.get(key)
        if shape is None:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            shape = self._known[key] = Shape(pod)
        self._pod, self._last = pod, shape
        return shape


def shape_of(pod: PodRequest) -> Hashable:
    """Equal for pods of one shape.

    A field of PodRequest that a filter on nodes, or a policy, reads must be part of it.
    """
    return (
        tuple(pod.resources),
        tuple(pod.resources.values()),
        tuple(map(_asked, pod.gpus)),
        pod.card_choice,
        pod.node_selector,
        pod.node_terms,
        pod.tolerations,
        pod.host_ports,
        pod.node_name,
        pod.runtime_class,
        pod.volume_terms,
        pod.volume_zones,
        pod.attached,
    )
