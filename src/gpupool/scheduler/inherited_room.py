"""inherit_room: a new leader keeps the room that the last one kept for pods that wait for long."""

from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.kept_room import jobs_of
from gpupool.scheduler.kept_words import told


def inherit_room(state: ClusterState) -> None:
    """Called once, when the whole state is known and claims are inherited: preemption goes first.

    Of a group those members count that had room: it was kept for as many as the group needs.
    """
    waiting = [
        pod
        for uid, pod in state.pending.items()
        if uid not in state.preemption_claims and not pod.nominated and told(pod.why) is not None
    ]
    for uid in state.kept_room.take_over(jobs_of(waiting, state.groups), state.policy):
        state.queue.reshape(uid, state.pending[uid].shape(state.cluster))
