"""The rules again, for one node and one pod at a time in plain Python: slow, but easy to check."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from gpupool.core.gpu import (
    Allocation,
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    GpuAsk,
    GpuMode,
    Isolation,
)
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest, PodTerm, Spread
from gpupool.core.ways import Way, Ways
from kubeclient.placement import NodeTerm


@dataclass
class World:
    nodes: dict[str, NodeInfo] = field(default_factory=dict)
    held: dict[str, tuple[PodRequest, str, Allocation]] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)

    def on(self, node: str) -> list[tuple[PodRequest, Allocation]]:
        return [(pod, gpus) for pod, where, gpus in self.held.values() if where == node]

    def pods(self) -> Iterator[tuple[PodRequest, NodeInfo]]:
        for pod, where, _ in self.held.values():
            if where in self.nodes:
                yield pod, self.nodes[where]


def fits(world: World, pod: PodRequest, node: NodeInfo) -> bool:
    return (
        not pod.unsupported
        and pod.node_name in ("", node.name)
        and (not node.unschedulable or tolerates(pod, "node.kubernetes.io/unschedulable", ""))
        and tolerates_all(pod, node)
        and selects(pod, node)
        and all(any_term(terms, node) for terms in pod.volume_terms)
        and all(any_term(terms, node) for terms in pod.volume_zones)
        and can_attach(world, pod, node)
        and has_ports(world, pod, node)
        and has_room(world, pod, node)
        and may_be_near(world, pod, node)
        and all(is_even(world, pod, node, s) for s in pod.spreads if s.required)
        and gives_cards(world, pod, node)
    )


def tolerates(pod: PodRequest, key: str, value: str, effect: str = "NoSchedule") -> bool:
    return any(
        t.effect in ("", effect)
        and t.key in ("", key)
        and (t.exists or (t.key != "" and t.value == value))
        for t in pod.tolerations
    )


def tolerates_all(pod: PodRequest, node: NodeInfo) -> bool:
    return all(
        taint.effect == "PreferNoSchedule" or tolerates(pod, taint.key, taint.value, taint.effect)
        for taint in node.taints
    )


def selects(pod: PodRequest, node: NodeInfo) -> bool:
    chosen = all(node.labels.get(key) == value for key, value in pod.node_selector)
    return chosen and (pod.node_terms is None or any_term(pod.node_terms, node))


def any_term(terms: tuple[NodeTerm, ...], node: NodeInfo) -> bool:
    return any(
        (term.labels or term.fields)
        and all(r.matches(node.labels) for r in term.labels)
        and all(r.matches({"metadata.name": node.name}) for r in term.fields)
        for term in terms
    )


def has_ports(world: World, pod: PodRequest, node: NodeInfo) -> bool:
    taken = [port for other, _ in world.on(node.name) for port in other.host_ports]
    return not any(
        (a.protocol, a.port) == (b.protocol, b.port) and ("0.0.0.0" in (a.ip, b.ip) or a.ip == b.ip)
        for a in pod.host_ports
        for b in taken
    )


def can_attach(world: World, pod: PodRequest, node: NodeInfo) -> bool:
    there = {volume for other, _ in world.on(node.name) for volume in other.attached}
    for driver, limit in node.volume_limits.items():
        before = {volume for volume in there if volume.driver == driver}
        after = before | {volume for volume in pod.attached if volume.driver == driver}
        if after != before and len(after) > limit:
            return False
    return True


def has_room(world: World, pod: PodRequest, node: NodeInfo) -> bool:
    return all(
        not amount
        or amount + sum(other.resources.get(name, 0) for other, _ in world.on(node.name))
        <= node.allocatable.get(name, 0)
        for name, amount in pod.resources.items()
    )


# -- affinity and spread -------------------------------------------------------------------------


def is_meant(world: World, term: PodTerm, pod: PodRequest) -> bool:
    inside = pod.namespace in term.namespaces or (
        term.namespace_selector is not None
        and term.namespace_selector.matches(world.namespaces.get(pod.namespace, {}))
    )
    return inside and term.selector.matches(pod.labels)


def together(one: NodeInfo, other: NodeInfo, key: str) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def may_be_near(world: World, pod: PodRequest, node: NodeInfo) -> bool:
    for other, where in world.pods():
        if any(
            is_meant(world, t, other) and together(node, where, t.topology_key)
            for t in pod.anti_affinity
        ):
            return False
        if any(
            is_meant(world, t, pod) and together(node, where, t.topology_key)
            for t in other.anti_affinity
        ):
            return False
    if not pod.affinity:
        return True
    if any(term.topology_key not in node.labels for term in pod.affinity):
        return False
    company = [w for o, w in world.pods() if all(is_meant(world, t, o) for t in pod.affinity)]
    if all(any(together(node, w, t.topology_key) for w in company) for t in pod.affinity):
        return True
    alone = not any(t.topology_key in w.labels for w in company for t in pod.affinity)
    return alone and all(is_meant(world, t, pod) for t in pod.affinity)


def is_even(world: World, pod: PodRequest, node: NodeInfo, spread: Spread) -> bool:
    key = spread.topology_key
    if key not in node.labels:
        return False
    keys = [s.topology_key for s in pod.spreads if s.required]
    counted = [
        n
        for n in world.nodes.values()
        if all(k in n.labels for k in keys)
        and (not spread.honors_affinity or selects(pod, n))
        and (not spread.honors_taints or tolerates_all(pod, n))
    ]
    found = {n.labels[key]: 0 for n in counted}
    for other, where in world.pods():
        if (
            where in counted
            and other.namespace == pod.namespace
            and not other.terminating
            and spread.selector.matches(other.labels)
        ):
            found[where.labels[key]] += 1
    if not found:
        return True
    least = min(found.values()) if len(found) >= spread.min_domains else 0
    itself = not pod.terminating and spread.selector.matches(pod.labels)
    return found.get(node.labels[key], 0) + itself - least <= spread.max_skew


# -- cards ---------------------------------------------------------------------------------------


def card_use(world: World, node: NodeInfo, card: Card) -> tuple[int, int, bool]:
    """Units and percent that are held, and whether a pod holds the whole card."""
    units = percent = 0
    whole = False
    for pod, gpus in world.on(node.name):
        init = {ask.container for ask in pod.gpus if ask.is_init}
        phases: dict[str, list[int]] = {}
        owns = False
        for container in gpus.containers:
            phase = container.container if container.container in init else ""
            for share in container.shares:
                if share.uuid != card.uuid:
                    continue
                if container.isolation is Isolation.WHOLE:
                    owns = True
                else:
                    now = phases.setdefault(phase, [0, 0])
                    now[0] += share.units
                    now[1] += share.percent
        if owns:  # also while its init containers use a part of it
            whole = True
            continue
        units += max((now[0] for now in phases.values()), default=0)
        percent += max((now[1] for now in phases.values()), default=0)
    return units, percent, whole


def may_hold(gpus: Allocation, node: NodeInfo) -> set[str]:
    """Cards of which nobody knows whether the pod holds them."""
    cards = node.inventory.cards if node.inventory else ()
    unread = gpus.unread
    if unread is None:
        return set()
    if unread.uuids:
        return {card.uuid for card in cards} & unread.uuids
    named = {card.uuid for card in cards if card.index in unread.indexes}
    known = len(unread.indexes) == len({c.index for c in cards if c.index in unread.indexes})
    return named if unread.indexes and known else {card.uuid for card in cards}


def left_of(world: World, node: NodeInfo, card: Card) -> tuple[int, int, bool]:
    """Units and percent that are free, and whether the card can be given as a whole."""
    if card.health is not CardHealth.HEALTHY or not card.units:
        return 0, 0, False
    if any(card.uuid in may_hold(gpus, node) for _, gpus in world.on(node.name)):
        return 0, 0, False
    units, percent, whole = card_use(world, node, card)
    if whole:
        return 0, 0, False
    usable = (card.memory_mib - min(card.outside_mib, card.memory_mib)) * card.units
    most = usable // card.memory_mib
    untouched = not units and not percent and card.outside_mib < card.unit_mib and most > 0
    return max(0, most - units), max(0, 100 - percent), untouched


def gives_cards(world: World, pod: PodRequest, node: NodeInfo) -> bool:
    if not pod.gpus:
        return True
    if node.inventory is None:
        return False
    if not suits_runtime(pod.runtime_class, node.inventory.ways):
        return False
    if any(a.whole for a in pod.gpus) and node.gpu_mode is GpuMode.SHARED:
        return False
    if any(a.units for a in pod.gpus) and node.gpu_mode is GpuMode.WHOLE:
        return False
    cards = [c for c in node.inventory.cards if is_open(world, pod, node, c)]
    state = [left_of(world, node, card) for card in cards]
    phases = [[a for a in pod.gpus if not a.is_init], *([a] for a in pod.gpus if a.is_init)]
    return all(can_assign(phase, state) for phase in phases)


def suits_runtime(runtime_class: str, ways: Ways | None) -> bool:
    """In words: where a class brings the cards, the pod has that class; where a plugin does, the
    pod has no class of NVIDIA that the node does not have."""
    if ways is None:
        return True
    if ways.chosen is Way.RUNTIME_CLASS:
        return runtime_class == ways.runtime_class
    if ways.chosen in (Way.NRI, Way.NVIDIA_NRI):
        return runtime_class != "nvidia" or ways.runtime_class == "nvidia"
    return True


def can_assign(asks: list[GpuAsk], state: list[tuple[int, int, bool]]) -> bool:
    if not asks:
        return True
    ask, rest = asks[0], asks[1:]
    for rows in combinations(range(len(state)), ask.whole or ask.cards):
        after = list(state)
        for row in rows:
            units, percent, whole = state[row]
            if ask.whole and whole:
                after[row] = (0, 0, False)
            elif not ask.whole and units >= ask.units and percent >= ask.percent:
                after[row] = (units - ask.units, percent - ask.percent, False)
            else:
                break
        else:
            if can_assign(rest, after):
                return True
    return False


def held_cards(gpus: Allocation, node: NodeInfo) -> set[str]:
    return {s.uuid for c in gpus.containers for s in c.shares} | may_hold(gpus, node)


def accepts(pod: PodRequest, card: Card) -> bool:
    """For models and names of one word."""
    choice = pod.card_choice
    if choice is None:
        return True
    named = [m.lower() in ("*", card.model.lower()) for m in choice.models]
    avoided = [m.lower() in ("*", card.model.lower()) for m in choice.avoided_models]
    return (
        (any(named) or not named)
        and not any(avoided)
        and (not choice.uuids or card.uuid in choice.uuids)
        and card.uuid not in choice.avoided_uuids
    )


def is_open(world: World, pod: PodRequest, node: NodeInfo, card: Card) -> bool:
    """Whether the pod accepts the card, and its card groups allow it."""
    if not accepts(pod, card):
        return False
    members = {
        kind: [
            (where, held_cards(gpus, world.nodes[where]))
            for other, where, gpus in world.held.values()
            if where in world.nodes
            and other.namespace == pod.namespace
            and getattr(other, kind) == getattr(pod, kind)
        ]
        for kind in ("same_card", "different_card")
        if getattr(pod, kind)
    }
    here = {
        kind: any(where == node.name and card.uuid in uuids for where, uuids in found)
        for kind, found in members.items()
    }
    if here.get("different_card"):
        return False
    return not members.get("same_card") or here["same_card"]


def complaints(world: World, pod: PodRequest, node: NodeInfo, given: Allocation) -> list[str]:
    """What is wrong with an allocation for a pod that is not held yet."""
    cards = {c.uuid: c for c in node.inventory.cards} if node.inventory else {}
    found = []
    if [g.container for g in given.containers] != [a.container for a in pod.gpus]:
        found.append("not one allocation for each container")
    for ask, gpus in zip(pod.gpus, given.containers, strict=False):
        uuids = [share.uuid for share in gpus.shares]
        if len(set(uuids)) != len(uuids) or len(uuids) != (ask.whole or ask.cards):
            found.append(f"{ask.container}: cards {uuids}")
        for share in gpus.shares:
            card = cards[share.uuid]
            if not is_exact(ask, share, card) or not is_open(world, pod, node, card):
                found.append(f"{share} is not a share of {card} for {ask}")
    init = {ask.container for ask in pod.gpus if ask.is_init}
    state = {uuid: left_of(world, node, card) for uuid, card in cards.items()}
    together = [g for g in given.containers if g.container not in init]
    for phase in (together, *([g] for g in given.containers if g.container in init)):
        found += taken_twice(phase, dict(state))
    return found


def is_exact(ask: GpuAsk, share: CardShare, card: Card) -> bool:
    if (share.index, share.card_units) != (card.index, card.units):
        return False
    if ask.whole:
        return (share.units, share.memory_mib) == (card.units, card.memory_mib)
    mib = ask.units * card.memory_mib // card.units
    return (share.units, share.memory_mib, share.percent) == (ask.units, mib, ask.percent)


def taken_twice(
    containers: list[ContainerGpus], state: dict[str, tuple[int, int, bool]]
) -> list[str]:
    """Shares of containers that run together, which exceed what was free."""
    found = []
    for gpus in containers:
        for share in gpus.shares:
            units, percent, whole = state[share.uuid]
            if gpus.isolation is Isolation.WHOLE:
                good, state[share.uuid] = whole, (0, 0, False)
            else:
                good = units >= share.units and percent >= share.percent
                state[share.uuid] = (units - share.units, percent - share.percent, False)
            if not good:
                found.append(f"{share} was not free")
    return found
