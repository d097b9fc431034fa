"""Orders about pods that are about to move: for one pod of a controller, where it is to go.

They stand in an annotation of the node that the pod goes to, and the scheduler follows them. Each
has an end, so that a program that was killed leaves nothing behind that counts.
"""

from collections.abc import Callable, Sequence

from gpupool.contract.names import ANNOTATION_PLANNED_MOVES
from gpupool.contract.planned_moves import (
    BadPlannedMoves,
    PlannedMove,
    planned_moves_of,
    planned_moves_text,
)
from kubeclient.client import Kube
from kubeclient.errors import Conflict
from kubeclient.resources import NODES
from kubeclient.times import seconds_of

_TRIES = 5  # a write conflicts when somebody else writes the node at the same time

Moves = Sequence[PlannedMove]


async def plan_move(kube: Kube, node: str, move: PlannedMove, now_s: float) -> None:
    """Raises KubeError."""

    def with_it(moves: Moves) -> Moves:
        lasting = [each for each in moves if (seconds_of(each.until) or 0.0) > now_s]
        return [*(each for each in lasting if each.pod != move.pod), move]

    await _change(kube, node, with_it)


async def end_move(kube: Kube, node: str, pod: str) -> None:
    """`pod`: the uid of the one that left. Raises KubeError."""
    await _change(kube, node, lambda moves: [each for each in moves if each.pod != pod])


async def _change(kube: Kube, node: str, change: Callable[[Moves], Moves]) -> None:
    for tries_left in reversed(range(_TRIES)):
        metadata = (await kube.get(NODES, node))["metadata"]
        before = (metadata.get("annotations") or {}).get(ANNOTATION_PLANNED_MOVES) or ""
        after = planned_moves_text(change(_readable(before)))
        if after == before:
            return
        # With the version: a blind write would undo what another plan has written meanwhile.
        changed = {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {ANNOTATION_PLANNED_MOVES: after or None},
        }
        try:
            await kube.patch(NODES.path(name=node), {"metadata": changed})
        except Conflict:
            if not tries_left:
                raise
        else:
            return


def _readable(text: str) -> Moves:
    """What cannot be read is of no use to the scheduler either, and is written over."""
    try:
        return planned_moves_of(text)
    except BadPlannedMoves:
        return ()
