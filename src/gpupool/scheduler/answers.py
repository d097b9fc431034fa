"""Text for `gpupool explain`: where a pod is, where it would go now, or why it fits nowhere."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpupool.core.gpu import Allocation, ContainerGpus
from gpupool.core.pods import PodRequest
from gpupool.engine.card_words import card_summary
from gpupool.engine.cluster import reserved_uid
from gpupool.engine.decide import Placement, decide
from gpupool.engine.explain import NodeList, explain
from gpupool.engine.preempt import NoPreemption, preempt
from gpupool.engine.trial import trial
from gpupool.scheduler.beside_claims import decide_beside, release_all, release_lower
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.next_step import next_step
from gpupool.scheduler.told_room import told_room

_MOST_NODES = 50  # listed one by one


def placed_words(shown: str, node: str, allocation: Allocation) -> str:
    return "\n".join([f"{shown} is on node {node}.", *_cards(allocation)]) + "\n"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What would happen to a pod if it were scheduled now."""

    placement: Placement | None  # None: it fits nowhere
    why: str = ""  # it fits nowhere
    room_on: str = ""  # the node where pods of lower priority would have to go, for this one
    victims: tuple[str, ...] = ()  # those pods
    nodes: NodeList | None = None
    next_step: str = ""  # what a person can do about it


def outlook(state: ClusterState, pod: PodRequest) -> Outlook:
    """Changes nothing. The state is of a program that only shows the cluster."""
    with told_room(state):
        decision = decide_beside(state, pod)
        if isinstance(decision, Placement):
            return Outlook(decision)
        kept = _kept_words(state, pod)
        with trial(state.cluster) as trying:  # its own room is not in its way
            trying.release(reserved_uid(pod.uid))
            release_lower(state, [pod], trying)
            return _without_room(state, pod, kept)


def _kept_words(state: ClusterState, pod: PodRequest) -> str:
    """Whether only room that is kept for others is in its way."""
    with trial(state.cluster) as trying:
        release_all(state, trying)
        found = decide(state.cluster, pod, state.policy)
    if not isinstance(found, Placement):
        return ""
    node = state.cluster.state(found.node)
    held = node.pods.values() if node is not None else ()
    names = sorted(f"{each.pod.namespace}/{each.pod.name}" for each in held if each.reserved)
    return (
        f"It would fit on node {found.node}, but room there is kept for {', '.join(names)}. Pods "
        "that are known to end before that is needed may use it."
    )


def _without_room(state: ClusterState, pod: PodRequest, kept: str) -> Outlook:
    explanation = explain(state.cluster, pod)
    parts = (explanation.message, card_summary(state.cluster, pod), kept)
    why = " ".join(part for part in parts if part)
    room = preempt(state.cluster, pod, state.policy, tuple(state.budgets.values()))
    if isinstance(room, NoPreemption):
        advice = next_step(state.cluster, pod)
        return Outlook(None, why, nodes=explanation.nodes, next_step=advice)
    victims = tuple(_names(state, room.victims))
    return Outlook(None, why, room.node, victims, explanation.nodes)


def outlook_words(shown: str, found: Outlook) -> str:
    if found.placement is not None:
        node, allocation = found.placement
        return "\n".join([f"{shown} would go to node {node}.", *_cards(allocation)]) + "\n"
    lines = [f"{shown} fits nowhere now.", found.why]
    if found.room_on:
        names = ", ".join(found.victims)
        lines.append(
            f"Its priority would make room on node {found.room_on}; {names} would have to go."
        )
    advice = ["", f"Next: {found.next_step}"] if found.next_step else []
    return "\n".join([*lines, "", *_nodes(found.nodes), *advice]).rstrip() + "\n"


def _names(state: ClusterState, uids: Iterable[str]) -> Iterator[str]:
    for uid in uids:
        held = state.cluster.held(uid)
        if held is not None:
            yield f"{held.pod.namespace}/{held.pod.name}"


def _cards(allocation: Allocation) -> list[str]:
    lines = [line for gpus in allocation.containers for line in _container(gpus)]
    unread = allocation.unread
    if unread is not None and unread.has_what_it_asks:
        listed = ", ".join(map(str, sorted(unread.indexes)))
        lines.append(f"  Another scheduler gave it what it asks for, on card {listed}.")
    elif unread is not None:
        lines.append(f"  Which cards it holds cannot be read: {unread.why}.")
    return lines


def _container(gpus: ContainerGpus) -> Iterator[str]:
    for share in gpus.shares:
        card = f"card {share.index} ({share.uuid})"
        if gpus.wall is None:
            yield f"  container {gpus.container}: {card}, the whole card"
            continue
        compute = f" and {share.percent} % of its compute" if share.percent else ""
        memory = f"{share.units} of {share.card_units} units ({share.memory_mib} MiB)"
        yield f"  container {gpus.container}: {card}, {memory}{compute}, isolation {gpus.wall}"


def _nodes(nodes: NodeList | None) -> Iterator[str]:
    if nodes is None:
        return
    for node in nodes[:_MOST_NODES]:
        yield f"{node.node}: {', '.join(node.reasons) or 'would do'}"
        yield from (f"  {card}" for card in node.cards)
    if len(nodes) > _MOST_NODES:
        yield f"... and {len(nodes) - _MOST_NODES} more"
