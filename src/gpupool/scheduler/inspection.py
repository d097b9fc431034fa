"""What the extender's `inspect` answers: nodes, cards and pods, in units of GPU memory."""

from gpupool.engine.card_words import closed_words
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.node_state import CardState, NodeState
from kubeclient.objects import Obj


def inspection(cluster: ClusterModel, node: str = "") -> Obj:
    """For all nodes with cards, or for `node`."""
    states = (cluster.at(int(index)) for index in cluster.all_nodes())
    return {
        "nodes": [
            _node(state)
            for state in states
            if state.cards and (not node or state.node.name == node)
        ]
    }


def _node(state: NodeState) -> Obj:
    devices = [_card(card, state) for card in state.cards]
    return {
        "name": state.node.name,
        "totalGPU": sum(device["totalGPU"] for device in devices),
        "usedGPU": sum(device["usedGPU"] for device in devices),
        "devs": devices,
    }


def _card(card: CardState, state: NodeState) -> Obj:
    pods: list[Obj] = []
    for held in state.pods.values():
        for hold in held.cards if not held.reserved else ():
            if hold.possible and not hold.units:  # nobody can read whether it holds the card
                continue
            if hold.uuid == card.card.uuid:
                used = card.card.units if hold.whole else hold.units
                name, namespace = held.pod.name, held.pod.namespace
                pods.append({"name": name, "namespace": namespace, "usedGPU": used})
    return {
        "id": card.card.index,
        "totalGPU": card.card.units,
        "usedGPU": sum(pod["usedGPU"] for pod in pods),
        "pods": pods,
        **({"closed": closed_words(state, card)} if card.closed else {}),
    }
