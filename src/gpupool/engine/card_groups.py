"""Groups of pods that share a card, or never do: which cards of a node that closes to a pod."""

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import Cluster, different_cards, same_cards
from gpupool.engine.node_state import NodeState


def closed_cards(pod: PodRequest, cluster: Cluster, state: NodeState) -> frozenset[int]:
    """Rows of the cards that the pod may not use because of the groups it is in."""
    closed: set[int] = set()
    if pod.different_card:
        closed |= _rows(cluster.groups.get(different_cards(pod), {}), state)
    if pod.same_card:
        members = cluster.groups.get(same_cards(pod), {})
        if members:
            closed |= set(range(len(state.cards))) - _rows(members, state)
    return frozenset(closed)


def _rows(members: dict[str, str], state: NodeState) -> set[int]:
    """Cards of this node that members hold something of."""
    return {
        state.card_rows[hold.uuid]
        for uid, node in members.items()
        if node == state.node.name
        for hold in state.pods[uid].cards
        if hold.uuid in state.card_rows
    }
