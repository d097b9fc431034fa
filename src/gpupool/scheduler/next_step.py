"""What a person can do about a pod that gets no GPUs, in one sentence. Pure."""

from collections.abc import Collection, Sequence

from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.card_words import card_summary, open_nodes
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.filters.gpus import allows_mode, whole_cards
from gpupool.engine.pod_index import Finder, look_of

_SHOWN = 3  # values of a label
_SHARE, _WHOLE = "a share (aliyun.com/gpu-mem)", "a whole card (nvidia.com/gpu)"


def next_step(cluster: ClusterModel, pod: PodRequest) -> str:
    """Empty: neither GPUs, nor labels of nodes, nor pods that it wants near are why it waits."""
    if not card_summary(cluster, pod):
        known = [cluster.at(int(index)).node for index in cluster.all_nodes()]
        return _selector_step(known, pod) or _affinity_step(known, pod) or _near_step(cluster, pod)
    nodes = open_nodes(cluster, pod)
    fitting = nodes[allows_mode(pod, cluster, nodes)]
    if not len(fitting):
        wanted, other = (_WHOLE, _SHARE) if whole_cards(pod) else (_SHARE, _WHOLE)
        return f"Request {other}, or add a node that offers {wanted}."
    by_node = [cluster.at(int(node)).cards for node in fitting]
    cards = [card for cards in by_node for card in cards]
    count = whole_cards(pod) or max(ask.cards for ask in pod.gpus)
    if count > (most := max(map(len, by_node))):
        return f"Request {most} or fewer cards, or add a node with {count}."
    units = max(ask.units for ask in pod.gpus)
    if units > (most := max(card.all_units for card in cards)):
        return f"Request {most} or fewer units, or add a node with larger cards."
    if any(card.pods for card in cards):
        return (
            "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
            "or add a node."
        )
    return "See why cards are out of use (gpupool gpu list), or add a node."


def _selector_step(nodes: Sequence[NodeInfo], pod: PodRequest) -> str:
    """Empty: each label of the selector is on some node."""
    for key, value in pod.node_selector:
        found = _values(nodes, key)
        if value in found:
            continue
        return (
            f'Change nodeSelector {key}: "{value}" ({_there_is(found)}), '
            f"or label a node: kubectl label node NODE {key}={value}"
        )
    return ""


def _affinity_step(nodes: Sequence[NodeInfo], pod: PodRequest) -> str:
    """The first requirement of the first term that no node meets. Empty: each is met by some."""
    needed = (each for term in pod.node_terms or () for each in term.labels)
    for each in needed:
        if any(each.matches(node.labels) for node in nodes):
            continue
        values = f" [{', '.join(each.values[:_SHOWN])}]" if each.values else ""
        words = f"{each.key} {each.operator}{values} ({_there_is(_values(nodes, each.key))})"
        return f"Change the node affinity {words}, or add a node that meets it."
    return ""


def _near_step(cluster: ClusterModel, pod: PodRequest) -> str:
    """The first pods that it must be near to and of which none runs. Empty: some of each do."""
    for term in pod.affinity:
        finder = Finder((look_of(term),), terminating=True)
        if cluster.found(finder).any() or cluster.index.finds(finder, pod):
            continue
        named = [*term.namespaces[:_SHOWN]]
        if term.namespace_selector is not None:
            named.append(term.namespace_selector.text or "*")
        if named and not term.selector.nothing:
            words = f"Start a pod with {term.selector.text or '*'} (namespace {', '.join(named)})"
            return f"{words}, or change the pod affinity: no such pod runs."
    return ""


def _values(nodes: Sequence[NodeInfo], key: str) -> set[str]:
    return {node.labels[key] for node in nodes if key in node.labels}


def _there_is(values: Collection[str]) -> str:
    if not values:
        return "no node has that label"
    return f"nodes have {' or '.join(sorted(values)[:_SHOWN])}"
