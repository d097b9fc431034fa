"""Cards on pages other than the map: their links lead to the map, with the panel open.

`colours`: of the whole cluster, so that a namespace has the same one on every page.
"""

from collections.abc import Iterable, Mapping

from gpupool.console.card_cells import CardCell, Drawing
from gpupool.console.colours import Palette
from gpupool.console.gpus import NodeView, used_of
from gpupool.console.rows.pods import PodRow
from gpupool.console.visit import Visit
from gpupool.core.readings import CardReading


def linked_cells(
    visit: Visit,
    node: NodeView,
    colours: Palette,
    readings: Mapping[str, CardReading],
    pods: Iterable[PodRow] = (),
) -> tuple[CardCell, ...]:
    drawn = Drawing(
        visit.t,
        colours,
        readings,
        used_of(readings),
        {(pod.namespace, pod.name): pod for pod in pods},
        lambda _, part: visit.link("pods", part.namespace, part.pod),
        lambda shown, view: visit.link("map", node=shown.name, card=view.card.uuid),
    )
    return drawn.cells(node)
