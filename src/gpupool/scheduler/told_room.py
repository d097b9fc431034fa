"""told_room: for programs that only read the API, the room that the scheduler says it keeps.

The scheduler chose it by running times that it has learned. A reader does not choose again: node
and cards are those that the waiting pod names (`kept_words.py`), and the engine finds out which of
the pods there have to leave before.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from gpupool.engine.future_room import Place
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.kept_words import told


@contextmanager
def told_room(state: ClusterState, at_least: int | None = None) -> Iterator[None]:
    """Inside the context room is kept for these pods. Not for the state of a scheduler: afterwards
    no room is kept at all.

    `at_least`: only for pods of this priority and above.
    """
    places = [
        Place(pod.request, found.node, found.cards)
        for pod in sorted(state.pending.values(), key=lambda pod: (pod.created, pod.uid))
        if at_least is None or pod.request.priority >= at_least
        if (found := told(pod.why)) is not None
    ]
    state.kept_room.believe(places, state.policy)
    try:
        yield
    finally:
        state.kept_room.drop_all()
