"""The nomination of a pod that `gpupool defrag` moves: where the pod after it is to go.

Equal nodes are equally good to the scheduler. It takes the one that it has known for longest, and
the plan was made by another program, which got to know them in another order.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from gpupool.cli.defrag_cordons import uninterrupted, uuids_of
from gpupool.contract.planned_moves import PlannedMove
from gpupool.engine.defrag import Move
from gpupool.orders.planned_moves import end_move, plan_move
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.times import stamp

# The scheduler hears of nodes and of pods by two watches, and nobody promises that what was written
# first is told first.
_HEARD_S = 1.0
_TRIES = 5  # to end it
_PAUSE_S = 1.0
_LONGEST_END_S = 20.0


@contextlib.asynccontextmanager
async def nominated(kube: Kube, move: Move, controller: str, valid_s: float) -> AsyncIterator[None]:
    """Raises KubeError if it could not be written: then nobody may be evicted."""
    node, now_s = move.target.node, time.time()
    cards = tuple(sorted(uuids_of(move.target.allocation)))
    wanted = PlannedMove(move.pod.uid, controller, cards, stamp(now_s + valid_s))
    try:
        await plan_move(kube, node, wanted, now_s)
        await asyncio.sleep(_HEARD_S)
        yield
    finally:
        if await uninterrupted(_end(kube, node, move.pod.uid)):
            _interrupt_again()


def _interrupt_again() -> None:
    """The next step is not taken; what is done by now is still counted."""
    task = asyncio.current_task()
    if task is not None:
        task.cancel()


async def _end(kube: Kube, node: str, pod: str) -> None:
    """As well as it can be done: it ends by itself soon."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_END_S):
            for tries_left in reversed(range(_TRIES)):
                try:
                    await end_move(kube, node, pod)
                except NotFound:
                    return  # the node is gone
                except KubeError:
                    if tries_left:
                        await asyncio.sleep(_PAUSE_S)
                else:
                    return
