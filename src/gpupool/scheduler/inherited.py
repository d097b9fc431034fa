"""What a new leader takes over: claims on room that is being cleared, and room that is kept.

Neither is in the API. Claims are found again by nominations, kept room by the words of conditions.
"""

from collections.abc import Mapping

from gpupool.engine.decide import Placement, decide_on
from gpupool.engine.gang import size_of
from gpupool.engine.node_state import Held
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.kept_room import jobs_of
from gpupool.scheduler.kept_words import told
from gpupool.scheduler.making_room import RoomMaker
from gpupool.scheduler.pending import Pending


def inherit_claims(room: RoomMaker) -> None:
    """Claim the room that an earlier leader cleared. Called once, when the whole state is known,
    before the first decision.
    """
    state, now_s = room.state, room.clock()
    leaving = {held.pod.uid: held for held in state.cluster.holds() if held.pod.preempted}
    nominated = [pod for pod in state.pending.values() if pod.nominated]
    # Large ones first: a small one would start at once in what a large one waits for.
    for pod in sorted(nominated, key=_order):
        found = _inherited(room, pod, leaving)
        if found is not None:
            placement, own = found
            state.preemption_claims.make(pod.request, placement, own, now_s)
            state.preemption_claims.share(pod.uid)
            for held in own:
                del leaving[held.pod.uid]
    for group in {pod.group.key for pod in nominated if pod.group is not None}:
        state.preemption_claims.join(state.groups.waiting(group))


def _order(pod: Pending) -> tuple[object, ...]:
    size = tuple(-amount for amount in size_of(pod.request))
    return (-pod.request.priority, size, pod.created, pod.uid)


def _inherited(
    room: RoomMaker, pod: Pending, leaving: Mapping[str, Held]
) -> tuple[Placement, list[Held]] | None:
    """Where the pod will fit, and which of those that are leaving must have gone before."""
    cluster, policy, node = room.state.cluster, room.state.policy, (pod.nominated,)
    with room.later() as trying:
        for uid in leaving:
            trying.release(uid)
        found = decide_on(cluster, pod.request, policy, node)
        if not isinstance(found, Placement):
            return None
        own = []
        for held in leaving.values():
            if held.node != pod.nominated:
                continue
            trying.hold(held.pod, held.node, held.allocation)
            without = decide_on(cluster, pod.request, policy, node)
            if isinstance(without, Placement):
                found = without
            else:
                trying.release(held.pod.uid)
                own.append(held)
    return found, own


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
