"""preempt: which pods of lower priority must leave one node so that a pod fits there.

For each node that could help, in a trial: all pods of lower priority are released; if the pod then
fits, as many of them as possible are put back, first those whose disruption budget would be broken
and those of high priority. For a pod with GPUs the cheapest cards are found first, so that the
victims free one card, and not a little of each.

Among nodes: the fewest broken budgets, then the lowest maximum priority of a victim, the smallest
sum of priorities, the fewest victims, and the latest start of the most important victims.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gpupool.core.pods import DisruptionBudget, PodRequest
from gpupool.engine.cards import allocation_on, closed_cards
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.explain import first_reasons, fit_message, refusals
from gpupool.engine.filters import FILTERS
from gpupool.engine.filters.host_ports import HOST_PORTS
from gpupool.engine.filters.spread import SPREAD, UNEVEN, counts_any
from gpupool.engine.kinds import ask_of
from gpupool.engine.node_state import Held, NodeState
from gpupool.engine.out_of_reach import out_of_reach
from gpupool.engine.policies.policy import Policy
from gpupool.engine.trial import Trial, trial
from gpupool.engine.victims_by_card import cheapest_cards, start_of

# The search stops after this many nodes that would do: as many as kube-scheduler wants by default
# (minCandidateNodesAbsolute).
ENOUGH = 100
_LOWEST_PRIORITY = -(2**31)
# The filters before these read the node alone, and have not refused it.
_AS_PODS_LEAVE = FILTERS[FILTERS.index(HOST_PORTS) :]
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."


@dataclass(frozen=True, slots=True)
class Preemption:
    node: str
    victims: tuple[str, ...]  # uids, most important first
    broken_budgets: int  # victims whose budget allows no more


@dataclass(frozen=True, slots=True)
class NoPreemption:
    message: str  # what kube-scheduler puts behind "preemption: "


def preempt(
    cluster: ClusterModel,
    pod: PodRequest,
    policy: Policy,
    budgets: Sequence[DisruptionBudget] = (),
    spared: Collection[str] = (),
    enough: int = ENOUGH,
) -> Preemption | NoPreemption:
    """Only for pods that fit nowhere. `spared`: uids of pods that must not be victims."""
    if not pod.may_preempt:
        return NoPreemption(NEVER)
    if pod.unsupported or pod.waits_for:
        nodes = len(cluster)
        return NoPreemption(fit_message(nodes, Counter({NOT_HELPFUL: nodes})))
    found: list[_Candidate] = []
    failures: Counter[str] = Counter()
    curable = _curable_nodes(cluster, pod)
    failures[NOT_HELPFUL] = len(cluster) - len(curable)
    uneven = _uneven(cluster, pod, curable)
    for node in curable:
        state = cluster.at(node)
        below = _below(state, pod, spared)
        if not below:
            failures[NO_VICTIMS] += 1
            continue
        # A quick no, without a trial: those that would leave are not among the pods that it counts.
        if node in uneven and not counts_any(pod, cluster, (held.pod for held in below)):
            failures[UNEVEN] += 1
            continue
        if reasons := out_of_reach(pod, state, below):
            failures.update(reasons)
            continue
        with trial(cluster) as trying:
            candidate = _on_node(_Attempt(cluster, pod, policy, state, trying), below, budgets)
        if isinstance(candidate, _Candidate):
            found.append(candidate)
            if len(found) >= enough:
                break
        else:
            failures.update(candidate)
    if not found:
        # The plus removes reasons that no node has.
        return NoPreemption(fit_message(len(cluster), +failures))
    return _best(found)


def preempt_on(
    cluster: ClusterModel,
    pod: PodRequest,
    policy: Policy,
    node: str,
    budgets: Sequence[DisruptionBudget] = (),
    spared: Collection[str] = (),
) -> Preemption | None:
    """On this node alone."""
    state = cluster.state(node)
    if state is None or not _is_curable(cluster, pod, state.index):
        return None
    below = _below(state, pod, spared)
    with trial(cluster) as trying:
        found = _on_node(_Attempt(cluster, pod, policy, state, trying), below, budgets)
    return _best([found]) if isinstance(found, _Candidate) else None


def _below(state: NodeState, pod: PodRequest, spared: Collection[str]) -> list[Held]:
    """The pods of the node that may be evicted for this one. A reservation is no pod."""
    return [
        held
        for held in state.pods.values()
        if held.pod.priority < pod.priority and not held.reserved and held.pod.uid not in spared
    ]


def _is_curable(cluster: ClusterModel, pod: PodRequest, node: int) -> bool:
    one = np.array([node], dtype=np.intp)
    return all(refused.curable for refused in refusals(cluster, pod, one))


def _curable_nodes(cluster: ClusterModel, pod: PodRequest) -> list[int]:
    """Nodes that the pod could use if pods left them."""
    incurable: set[int] = set()
    for refused in refusals(cluster, pod):
        if not refused.curable:
            incurable.update(int(node) for node in refused.nodes)
    return [int(node) for node in cluster.all_nodes() if int(node) not in incurable]


def _uneven(cluster: ClusterModel, pod: PodRequest, nodes: list[int]) -> set[int]:
    """Those of the nodes on which one more pod would be too many by its required spread."""
    if not pod.spreads:
        return set()
    listed = np.array(nodes, dtype=np.intp)
    return set(listed[~SPREAD.passes(pod, cluster, listed)].tolist())


@dataclass(frozen=True, slots=True)
class _Attempt:
    cluster: ClusterModel
    pod: PodRequest
    policy: Policy
    state: NodeState
    trying: Trial

    def fits(self) -> bool:
        node = np.array([self.state.index], dtype=np.intp)
        if not all(bool(f.passes(self.pod, self.cluster, node)[0]) for f in _AS_PODS_LEAVE):
            return False
        closed = closed_cards(self.pod, self.cluster, self.state)
        ask = ask_of(self.pod)
        found = allocation_on(self.cluster, self.pod, self.state, self.policy, ask, closed)
        return found is not None

    def needs_cards_of(self, gone: Held) -> bool:
        """Whether too few whole cards were left if it came back. A quick no, without a trial."""
        if len(self.pod.gpus) != 1 or not self.pod.gpus[0].whole:
            return False
        free = {each.card.uuid for each in self.state.cards if not each.pods}
        return len(free.difference(hold.uuid for hold in gone.cards)) < self.pod.gpus[0].whole


@dataclass(frozen=True, slots=True)
class _Candidate:
    node: str
    victims: tuple[Held, ...]
    broken: int


def _on_node(
    attempt: _Attempt, below: list[Held], budgets: Sequence[DisruptionBudget]
) -> _Candidate | list[str]:
    """A list: the reasons why the pod would not fit even with all of `below` gone."""
    broken = breaking(below, budgets)
    # Before the release: it reads what these pods hold of each card.
    cheapest = cheapest_cards(attempt.pod, attempt.state, below, broken)
    gone = _leaving(attempt, below, cheapest)
    if gone is None:
        return first_reasons(attempt.cluster, attempt.pod, attempt.state.index)
    victims: list[Held] = []
    for held in sorted(gone, key=lambda h: _comes_back(h, cheapest, broken)):
        if attempt.needs_cards_of(held):
            victims.append(held)
            continue
        attempt.trying.hold(held.pod, held.node, held.allocation)
        if not attempt.fits():
            attempt.trying.release(held.pod.uid)
            victims.append(held)
    victims.sort(key=_importance)
    name = attempt.state.node.name
    return _Candidate(name, tuple(victims), sum(h.pod.uid in broken for h in victims))


def _leaving(attempt: _Attempt, below: list[Held], cheapest: frozenset[str]) -> list[Held] | None:
    """Releases pods until the pod fits; None: it does not. The cheapest alone where they are
    enough: then all others would come back, one by one, and most nodes need no other."""
    first = [held for held in below if held.pod.uid in cheapest]
    rest = [held for held in below if held.pod.uid not in cheapest]
    for held in first:
        attempt.trying.release(held.pod.uid)
    if first and rest and _wants_nobody(attempt.pod) and attempt.fits():
        return first
    for held in rest:
        attempt.trying.release(held.pod.uid)
    return below if attempt.fits() else None


def _wants_nobody(pod: PodRequest) -> bool:
    """What fits beside some pods fits beside fewer of them."""
    return not (pod.affinity or pod.spreads or pod.same_card)


def _comes_back(
    held: Held, cheapest: frozenset[str], broken: frozenset[str]
) -> tuple[bool, bool, int, str, str]:
    uid = held.pod.uid
    return (uid in cheapest, uid not in broken, *_importance(held))


def _importance(held: Held) -> tuple[int, str, str]:
    """The most important first, as in kube-scheduler."""
    return (-held.pod.priority, start_of(held), held.pod.uid)


def breaking(below: Iterable[Held], budgets: Sequence[DisruptionBudget]) -> frozenset[str]:
    """Pods whose disruption budget is used up by more important pods."""
    left = [budget.allowed for budget in budgets]
    found = set()
    for held in sorted(below, key=_importance):
        pod = held.pod
        for at, budget in enumerate(budgets):
            if budget.covers(pod):
                left[at] -= 1
                if left[at] < 0:
                    found.add(pod.uid)
    return frozenset(found)


def _best(found: list[_Candidate]) -> Preemption:
    least = min(_damage(candidate) for candidate in found)
    equal = [candidate for candidate in found if _damage(candidate) == least]
    best = max(equal, key=lambda c: _first_start(c.victims))
    return Preemption(best.node, tuple(held.pod.uid for held in best.victims), best.broken)


def _damage(candidate: _Candidate) -> tuple[int, int, int, int]:
    priorities = [held.pod.priority for held in candidate.victims]
    # Counted from the lowest possible priority, so that every victim adds to the sum.
    total = sum(priority - _LOWEST_PRIORITY for priority in priorities)
    return (candidate.broken, max(priorities, default=0), total, len(priorities))


def _first_start(victims: tuple[Held, ...]) -> str:
    """The earliest start among the most important victims: the longer it ran, the more is lost."""
    if not victims:
        return ""
    top = victims[0].pod.priority
    return min(start_of(held) for held in victims if held.pod.priority == top)
