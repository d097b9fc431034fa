"""defrag: which pods would have to move where, so that a pod fits that fits nowhere now.

On each node that could help, sets of its pods are tried, small ones first: without them the new pod
must fit there, and each of them must find another place. Nobody is moved to make room for one that
moves, so the moves can be made in any order. Pods that move share no card with pods that room is
made for: those cards are cordoned while they move.

Among nodes: the fewest moves, then the lowest priorities, then the least running time that is lost.
Changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

from gpupool.core.gpu import Allocation, ContainerGpus, GpuAsk, GpuMode, Isolation
from gpupool.core.pods import DisruptionBudget, PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide, decide_on
from gpupool.engine.gang import size_of
from gpupool.engine.node_state import Held, NodeState
from gpupool.engine.policies.policy import Policy
from gpupool.engine.preempt import breaking, preempt_on
from gpupool.engine.trial import Trial, trial
from kubeclient.placement import Toleration

_ABOVE_ALL = 2**31 - 1  # more than any priority that Kubernetes allows
_OF_KUBERNETES = "node.kubernetes.io/"  # how keys of taints begin that Kubernetes sets
_ENOUGH_NODES = 200  # with a way to make room; the search stops there
_MOST_SETS = 300  # of pods that are tried on one node


@dataclass(frozen=True, slots=True)
class Move:
    pod: PodRequest
    source: str
    target: Placement


@dataclass(frozen=True, slots=True)
class Rules:
    """What may move."""

    most_moves: int
    may_move: Callable[[Held], bool] = lambda _held: True
    budgets: Sequence[DisruptionBudget] = ()
    # Of Jobs, to which a pod that is evicted is one that failed. The eviction API minds no Job.
    retries: Sequence[DisruptionBudget] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Empty moves: it fits as it is."""

    placements: tuple[Placement, ...]  # of the pods that room is made for, in their order
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class NoPlan:
    placed: int  # of the pods, before the first one for which no room can be made


def room_for(
    cluster: ClusterModel, pods: Sequence[PodRequest], policy: Policy, rules: Rules
) -> Plan | NoPlan:
    """Room for all of these pods, with the fewest moves that were found for one after the other."""
    placements: list[Placement] = []
    moves: list[Move] = []
    with trial(cluster) as trying:
        for pod in pods:
            # Nor do those that room is made for: they are not there yet.
            moved = frozenset(each.pod.uid for each in moves) | {each.uid for each in pods}
            left = rules.most_moves - len(moves)
            so_far = Plan(tuple(placements), tuple(moves))
            found = _Search(cluster, pod, policy, _rules_after(moves, rules), moved, so_far)
            step = found.best(left)
            if step is None:
                return NoPlan(len(placements))
            _carry_out(trying, pod, step)
            placements += step.placements
            moves += step.moves
    return Plan(tuple(placements), tuple(moves))


def _rules_after(moves: Sequence[Move], rules: Rules) -> Rules:
    """With what the budgets still allow after these moves."""

    def left(budgets: Sequence[DisruptionBudget]) -> list[DisruptionBudget]:
        return [
            replace(budget, allowed=budget.allowed - sum(budget.covers(each.pod) for each in moves))
            for budget in budgets
        ]

    return replace(rules, budgets=left(rules.budgets), retries=left(rules.retries))


def _carry_out(trying: Trial, pod: PodRequest, plan: Plan) -> None:
    for move in plan.moves:
        trying.release(move.pod.uid)
    trying.hold(pod, *plan.placements[0])
    for move in plan.moves:
        trying.hold(move.pod, *move.target)


@dataclass(frozen=True, slots=True)
class _Search:
    """Room for one pod."""

    cluster: ClusterModel
    pod: PodRequest
    policy: Policy
    rules: Rules
    # Uids of pods that may not move: those that have already, as once is enough, and new ones.
    moved: frozenset[str]
    so_far: Plan  # for pods before this one

    def best(self, most: int) -> Plan | None:
        """With at most so many moves."""
        with trial(self.cluster) as trying:
            self._close_targets(trying)
            decision = decide(self.cluster, self.pod, self.policy)
        if isinstance(decision, Placement):
            return Plan((decision,), ())
        best: Plan | None = None
        found = 0
        for state in self._nodes():
            limit = len(best.moves) if best else most
            plans = (self._plan(state, leaving) for leaving in self._leaving(state, limit))
            plan = next((plan for plan in plans if plan is not None), None)
            if plan is None:
                continue
            found += 1
            if best is None or _is_better(plan, best):
                best = plan
            if found == _ENOUGH_NODES:
                break
        return best

    def _nodes(self) -> Iterator[NodeState]:
        """Those with few pods first: there, little has to move."""
        columns = self.cluster.columns
        nodes = self.cluster.all_nodes()
        if self.pod.gpus:
            nodes = nodes[columns.has_cards[nodes]]
        for index in nodes[columns.pods[nodes].argsort(kind="stable")]:
            yield self.cluster.at(int(index))

    def _leaving(self, state: NodeState, most: int) -> Iterator[Sequence[Held]]:
        """Sets of pods whose leaving may make room: small sets first, all there are of them; where
        these are too many, the set that preemption would choose."""
        movable = [held for held in state.pods.values() if self._may_move(held)]
        fixed = state.pods.keys() - {held.pod.uid for held in movable}
        first = replace(self.pod, priority=_ABOVE_ALL)
        room = preempt_on(self.cluster, first, self.policy, state.node.name, (), fixed)
        if room is None:
            return  # there is no room even if all of them leave
        tried = 0
        for size in range(1, min(most, len(room.victims)) + 1):
            tried += comb(len(movable), size)
            if tried > _MOST_SETS:
                break
            yield from combinations(movable, size)
        else:
            return
        if len(room.victims) <= most:
            yield [held for held in movable if held.pod.uid in room.victims]

    def _may_move(self, held: Held) -> bool:
        gone = held.pod.terminating or held.reserved or held.pod.uid in self.moved
        # The eviction API refuses pods that two budgets cover.
        covered = sum(budget.covers(held.pod) for budget in self.rules.budgets)
        return not gone and covered <= 1 and self.rules.may_move(held)

    def _plan(self, state: NodeState, leaving: Sequence[Held]) -> Plan | None:
        """The pod on this node, and those that leave it elsewhere. None: one has no room."""
        if breaking(leaving, (*self.rules.budgets, *self.rules.retries)):
            return None
        with trial(self.cluster) as trying:
            for held in leaving:
                trying.release(held.pod.uid)
            with trial(self.cluster) as beside:
                self._close_targets(beside)
                here = decide_on(self.cluster, self.pod, self.policy, (state.node.name,))
            if not isinstance(here, Placement):
                return None
            trying.hold(self.pod, here.node, here.allocation)
            _close(trying, (*self.so_far.placements, here))
            moves = _elsewhere(self.cluster, leaving, self.policy, trying)
        return Plan((here,), moves) if moves is not None else None

    def _close_targets(self, trying: Trial) -> None:
        _close(trying, [move.target for move in self.so_far.moves])


def _close(trying: Trial, placements: Sequence[Placement]) -> None:
    """To all others, for the time of the trial."""
    for at, (node, given) in enumerate(placements):
        shares = {share.uuid: share for gpus in given.containers for share in gpus.shares}
        whole = ContainerGpus("", tuple(shares.values()), Isolation.WHOLE)
        trying.hold(PodRequest(f"closed/{at}", "", "", {}), node, Allocation((whole,)))


def _elsewhere(
    cluster: ClusterModel, leaving: Sequence[Held], policy: Policy, trying: Trial
) -> tuple[Move, ...] | None:
    """The largest first: small ones still find room after them. None: not for all of them."""
    moves = []
    for held in sorted(leaving, key=lambda each: size_of(each.pod), reverse=True):
        there = decide(cluster, held.pod, policy)
        if not isinstance(there, Placement):
            return None
        trying.hold(held.pod, there.node, there.allocation)
        moves.append(Move(held.pod, held.node, there))
    return tuple(moves)


def _is_better(plan: Plan, than: Plan) -> bool:
    """Fewer moves; pods of a lower priority; pods that started later have less to lose."""
    ours, theirs = _damage(plan), _damage(than)
    return ours < theirs or (ours == theirs and _first_start(plan) > _first_start(than))


def _damage(plan: Plan) -> tuple[int, int]:
    return len(plan.moves), max(move.pod.priority for move in plan.moves)


def _first_start(plan: Plan) -> str:
    return min(move.pod.started or "~" for move in plan.moves)  # "~" comes after all times


# -- without a pod in mind ---------------------------------------------------------------------


def largest_job(cluster: ClusterModel, policy: Policy) -> int:
    """How many whole cards of one node a pod could have now."""
    for cards in range(_most_cards(cluster), 0, -1):
        if isinstance(decide(cluster, _job(cluster, cards), policy), Placement):
            return cards
    return 0


def larger_job(cluster: ClusterModel, policy: Policy, rules: Rules) -> tuple[int, Plan] | None:
    """The largest job of one node that would fit after some moves. None: no larger one than now."""
    now = largest_job(cluster, policy)
    for cards in range(_most_cards(cluster), now, -1):
        plan = room_for(cluster, (_job(cluster, cards),), policy, rules)
        if isinstance(plan, Plan):
            return cards, plan
    return None


def _most_cards(cluster: ClusterModel) -> int:
    """Of a node that gives out whole cards."""
    states = (cluster.at(int(index)) for index in cluster.all_nodes())
    counts = (len(state.cards) for state in states if state.node.gpu_mode is not GpuMode.SHARED)
    return max(counts, default=0)


def _job(cluster: ClusterModel, cards: int) -> PodRequest:
    """A pod that asks for nothing but cards. It tolerates what keeps others off GPU nodes, and not
    what says that a node is not well."""
    keys = {taint.key for taints in cluster.taint_sets for taint in taints}
    tolerated = sorted(key for key in keys if not key.startswith(_OF_KUBERNETES))
    return PodRequest(
        f"job/{cards}",
        "",
        f"job-{cards}",
        resources={"pods": 1},
        tolerations=tuple(Toleration(key, True, "", "") for key in tolerated),
        gpus=(GpuAsk("job", whole=cards),),
    )
