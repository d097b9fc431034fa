"""preempt: which pods of lower priority must leave one node so that a pod fits there.

For each node that could help, all pods of lower priority leave it in thought (`attempts.py`); if
the pod then fits, as many of them as possible are put back, first those whose disruption budget
would be broken and those of high priority. For a pod with GPUs the cheapest cards are found first,
so that the victims free one card, and not a little of each.

Among nodes: the fewest broken budgets, then the lowest maximum priority of a victim, the smallest
sum of priorities, the fewest victims, and the latest start of the most important victims.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpupool.core.pods import DisruptionBudget, PodRequest
from gpupool.engine.attempts import Attempt, ByNumbers, InTrial, only_room_decides
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.explain import first_reasons, fit_message, refusals
from gpupool.engine.filters import resources
from gpupool.engine.filters.spread import SPREAD, UNEVEN, counts_any
from gpupool.engine.node_state import Held, NodeState
from gpupool.engine.out_of_reach import out_of_reach
from gpupool.engine.policies.policy import Ints, Policy
from gpupool.engine.trial import trial
from gpupool.engine.victims_by_card import cheapest_cards, start_of

# The search stops after this many nodes that would do: as many as kube-scheduler wants by default
# (minCandidateNodesAbsolute).
ENOUGH = 100
_LOWEST_PRIORITY = -(2**31)
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
    search = _Search(cluster, pod, policy, budgets, spared, resources.wanted(pod))
    even = SPREAD.passes(pod, cluster, curable)
    by_room = only_room_decides(pod, cluster, curable, even)
    for look in zip(curable.tolist(), even.tolist(), by_room.tolist(), strict=True):
        candidate = search.on(*look)
        if not isinstance(candidate, _Candidate):
            failures.update(candidate)
            continue
        found.append(candidate)
        if len(found) >= enough:
            break
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
    search = _Search(cluster, pod, policy, budgets, spared, resources.wanted(pod))
    found = search.in_trial(state, search.below(state))
    return _best([found]) if isinstance(found, _Candidate) else None


def _is_curable(cluster: ClusterModel, pod: PodRequest, node: int) -> bool:
    one = np.array([node], dtype=np.intp)
    return all(refused.curable for refused in refusals(cluster, pod, one))


def _curable_nodes(cluster: ClusterModel, pod: PodRequest) -> Ints:
    """Nodes that the pod could use if pods left them."""
    curable = cluster.columns.present.copy()
    for refused in refusals(cluster, pod):
        if not refused.curable:
            curable[refused.nodes] = False
    return np.flatnonzero(curable)


@dataclass(frozen=True, slots=True)
class _Candidate:
    node: str
    victims: tuple[Held, ...]
    broken: int


@dataclass(frozen=True, slots=True)
class _Search:
    cluster: ClusterModel
    pod: PodRequest
    policy: Policy
    budgets: Sequence[DisruptionBudget]
    spared: Collection[str]
    wanted: Mapping[str, int]

    def on(self, node: int, is_even: bool, is_by_room: bool) -> _Candidate | list[str]:
        """A list: the reasons why the pod would not fit even with all pods below it gone.

        `is_even`: passes by spread. `is_by_room`: see `only_room_decides`.
        """
        pod, cluster, state = self.pod, self.cluster, self.cluster.at(node)
        below = self.below(state)
        if not below:
            return [NO_VICTIMS]
        counted = bool(pod.spreads) and counts_any(pod, cluster, (held.pod for held in below))
        # Quick answers, without a trial: those that would leave are not among the pods that it
        # counts; there would be too little room; nothing else but room is asked for.
        if not is_even and not counted:
            return [UNEVEN]
        if reasons := out_of_reach(pod, self.wanted, state, below):
            return reasons
        if is_by_room and not counted:
            found = _on_node(ByNumbers(pod, state), pod, state, below, self.budgets)
            if found is not None:
                return found
        return self.in_trial(state, below)

    def below(self, state: NodeState) -> list[Held]:
        """The pods of the node that may be evicted for this one. A reservation is no pod."""
        priority, spared = self.pod.priority, self.spared
        return [
            held
            for held in state.pods.values()
            if held.pod.priority < priority and not held.reserved and held.pod.uid not in spared
        ]

    def in_trial(self, state: NodeState, below: list[Held]) -> _Candidate | list[str]:
        with trial(self.cluster) as trying:
            attempt = InTrial(self.cluster, self.pod, self.policy, state, trying)
            found = _on_node(attempt, self.pod, state, below, self.budgets)
            return found or first_reasons(self.cluster, self.pod, state.index)


def _on_node(
    attempt: Attempt,
    pod: PodRequest,
    state: NodeState,
    below: list[Held],
    budgets: Sequence[DisruptionBudget],
) -> _Candidate | None:
    """None: the pod would not fit even with all of `below` gone; then they are gone."""
    broken = breaking(below, budgets)
    # Before any leaves: it reads what these pods hold of each card.
    cheapest = cheapest_cards(pod, state, below, broken)
    gone = _leaving(attempt, pod, below, cheapest)
    if gone is None:
        return None
    gone = sorted(gone, key=lambda h: _comes_back(h, cheapest, broken))
    victims = [held for held in gone if not attempt.comes_back(held)]
    victims.sort(key=_importance)
    return _Candidate(state.node.name, tuple(victims), sum(h.pod.uid in broken for h in victims))


def _leaving(
    attempt: Attempt, pod: PodRequest, below: list[Held], cheapest: frozenset[str]
) -> list[Held] | None:
    """Lets pods leave until the pod fits; None: it does not. The cheapest alone where they are
    enough: then all others would come back, one by one, and most nodes need no other."""
    first = [held for held in below if held.pod.uid in cheapest]
    rest = below
    if first and len(first) < len(below) and _wants_nobody(pod):
        if attempt.leave(first):
            return first
        rest = [held for held in below if held.pod.uid not in cheapest]
    return below if attempt.leave(rest) else None


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
    if not budgets:
        return frozenset()
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
