"""Resizing a share: the allocation that a request means, and whether cards and quotas allow it.

A share stays on its cards. Only shares under the limiter can change while their container runs: for
any other share nobody can tell when a new size is in force.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.core.pods import PodRequest
from gpupool.core.quota import UnitsQuota
from gpupool.core.resize import ONLY
from gpupool.engine.card_holds import card_holds
from gpupool.engine.card_words import closed_words
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.node_state import CardState, NodeState, usable_units


class NoResize(NamedTuple):
    words: str


def wanted_allocation(
    state: NodeState, pod: PodRequest, allocation: Allocation, wish: Mapping[str, int]
) -> Allocation | NoResize:
    """The allocation that the request means. Does not depend on other pods of the node."""
    shares = [gpus for gpus in allocation.containers if gpus.isolation is not Isolation.WHOLE]
    if ONLY in wish:
        if len(shares) != 1:
            return NoResize(f"{len(shares)} of its containers have a share; say which one is meant")
        wish = {shares[0].container: wish[ONLY]}
    known = {gpus.container for gpus in allocation.containers}
    for name in wish:
        if name not in known:
            return NoResize(f"it has no container {name} with GPUs")
    init = {ask.container for ask in pod.gpus if ask.is_init}
    made = []
    for gpus in allocation.containers:
        new = gpus
        if gpus.container in wish:
            found = _resized(state, gpus, wish[gpus.container], gpus.container in init)
            if isinstance(found, NoResize):
                return found
            new = found
        made.append(new)
    return Allocation(tuple(made))


def _resized(
    state: NodeState, gpus: ContainerGpus, units: int, is_init: bool
) -> ContainerGpus | NoResize:
    name, count = gpus.container, len(gpus.shares)
    if gpus.isolation is Isolation.WHOLE:
        return NoResize(f"container {name} has whole cards")
    if gpus.isolation is Isolation.NONE:
        return NoResize(
            f"container {name} runs without the limiter: nothing would tell it of another share, "
            "or hold it to that"
        )
    if is_init:
        return NoResize(f"container {name} is an init container")
    if units < 1 or units % count:
        of = f"a multiple of its {count} cards" if count > 1 else "at least 1 unit"
        return NoResize(f"container {name}: wanted {of}, found {units}")
    made = []
    for share in gpus.shares:
        card = _card(state, share)
        if card is None:
            return NoResize(f"card {share.uuid} is not on node {state.node.name} any more")
        if units // count > card.card.units:
            has = f"card {share.index} has {card.card.units} units in all"
            return NoResize(f"{has}, {units // count} are asked for")
        made.append(card.share(units // count, share.percent))
    return replace(gpus, shares=tuple(made))


def room_for(cluster: ClusterModel, uid: str, wanted: Allocation) -> NoResize | None:
    """None: the cards have room for it beside what other pods hold."""
    held = cluster.held(uid)
    state = cluster.state(held.node) if held is not None else None
    if held is None or state is None:
        return NoResize("its node is not there")
    own = {hold.uuid: hold.units for hold in held.cards}
    for hold in card_holds(held.pod, wanted):
        row = state.card_rows.get(hold.uuid)
        if row is None:
            return NoResize(f"card {hold.uuid} is not on node {held.node} any more")
        card = state.cards[row]
        # The pod may hold more than its annotation says (`Resizing.hold`): all of it is subtracted.
        # Compute is not compared, because a resize leaves it as it is.
        others = card.units - own.get(hold.uuid, 0)
        if not card.usable:
            return NoResize(f"card {card.card.index} is {card.card.health}: {card.card.reason}")
        if card.closed:
            return NoResize(f"card {card.card.index} is {closed_words(state, card)}")
        there = usable_units(card.card)
        if card.wholes or others + hold.units > there:
            return NoResize(
                f"card {card.card.index} of node {held.node} has {there} units; others hold "
                f"{others}, so this pod can have {max(0, there - others)} of it, not {hold.units}"
            )
    return None


def within_quotas(
    cluster: ClusterModel, uid: str, wanted: Allocation, quotas: Iterable[UnitsQuota]
) -> NoResize | None:
    """None: the quotas allow it.

    A quota counts what pods requested when they were created. What they have grown since is added.
    """
    held = cluster.held(uid)
    if held is None:
        return NoResize("its node is not there")
    asked = _asked(held.pod)
    for quota in quotas:
        if not quota.covers(held.pod):
            continue
        # The quota includes this pod's request, but no growth of any pod: the API server counts
        # requests only.
        others = quota.used - asked
        others += sum(
            _growth(other.pod, other.allocation)
            for other in cluster.holds()
            if other.pod.uid != uid and quota.covers(other.pod)
        )
        units = asked + _growth(held.pod, wanted)
        if others + units > quota.hard:
            return NoResize(
                f"quota {quota.name} of namespace {quota.namespace} has {quota.hard} units of "
                f"gpu-mem; others have {others}, so this pod can have "
                f"{max(0, quota.hard - others)}, not {units}"
            )
    return None


def _asked(pod: PodRequest) -> int:
    """As Kubernetes counts: the larger of init containers and the sum of the others."""
    init = max((ask.units * ask.cards for ask in pod.gpus if ask.is_init), default=0)
    return max(init, sum(ask.units * ask.cards for ask in pod.gpus if not ask.is_init))


def _growth(pod: PodRequest, allocation: Allocation) -> int:
    """What the pod has beyond its request. Init containers cannot grow."""
    sharing = {ask.container for ask in pod.gpus if ask.units and not ask.is_init}
    units = sum(
        share.units
        for gpus in allocation.containers
        if gpus.container in sharing
        for share in gpus.shares
    )
    return max(0, units - _asked(pod))


def _card(state: NodeState, share: CardShare) -> CardState | None:
    row = state.card_rows.get(share.uuid)
    return state.cards[row] if row is not None else None
