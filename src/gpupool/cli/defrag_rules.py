"""Which pods `gpupool defrag` may move, and what keeps the others where they are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gpupool.cli.defrag_retries import budgets_of, has_retries
from gpupool.cli.scenario import Objects, controller_of, lives_with_its_node, uid_of
from gpupool.contract.names import LABEL_MAY_MOVE
from gpupool.engine.defrag import Move, Plan, Rules, room_for
from gpupool.scheduler.groups import group_of
from kubeclient.mirror import controller_uid
from kubeclient.resources import JOBS, PODS

if TYPE_CHECKING:
    from gpupool.core.pods import PodRequest
    from gpupool.engine.node_state import Held
    from gpupool.scheduler.cluster_state import ClusterState
    from kubeclient.objects import Obj

_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_MOST_WORDS = 3


def may_move(objects: Objects, highest: int | None) -> "Callable[[Held], bool]":
    """`highest`: priority of the pods for which room is made; those above it stay."""
    asking = _asking(objects)
    fixed = {uid_of(pod) for pod in objects[PODS] if _has_to_stay(pod)} | asking.keys()

    def may(held: "Held") -> bool:
        below = highest is None or held.pod.priority <= highest
        return below and held.pod.uid not in fixed

    return may


def _has_to_stay(pod: "Obj") -> bool:
    # A group that runs would stand still without one of its pods.
    is_member = group_of(pod["metadata"]) is not None
    return not controller_of(pod) or lives_with_its_node(pod) or is_member


def _asking(objects: Objects) -> dict[str, str]:
    """By uid of the pod: what says that it is to stay."""
    jobs = {uid_of(job): job for job in objects.get(JOBS, ())}
    return {uid_of(pod): words for pod in objects[PODS] if (words := _asks_to_stay(pod, jobs))}


def _asks_to_stay(pod: "Obj", jobs: "Mapping[str, Obj]") -> str:
    """What says so; empty: nothing."""
    metadata = pod["metadata"]
    if (metadata.get("labels") or {}).get(LABEL_MAY_MOVE) == "false":
        return f"the label {LABEL_MAY_MOVE}=false"
    if (metadata.get("annotations") or {}).get(_SAFE_TO_EVICT) == "false":
        return f"the annotation {_SAFE_TO_EVICT}=false"
    job = jobs.get(controller_uid(pod)) if jobs else None
    if job is not None and not has_retries(job, pod):
        return f"the Job {job['metadata']['name']}, which has no retries left"
    return ""


def in_the_way(
    objects: Objects,
    state: "ClusterState",
    wanted: "Sequence[PodRequest]",
    highest: int,
    most_moves: int,
) -> tuple[str, ...]:
    """What people have set that keeps pods where they are, where there would be a plan without it.
    Empty: there would be none either."""
    fixed = {uid_of(pod) for pod in objects[PODS] if _has_to_stay(pod)}
    rules = Rules(most_moves, lambda held: held.pod.uid not in fixed)
    plan = room_for(state.cluster, wanted, state.policy, rules)
    if not isinstance(plan, Plan):
        return ()
    found = [
        *_of_pods(plan.moves, _asking(objects), highest),
        *_of_budgets(plan.moves, state),
        *_of_jobs(plan.moves, objects),
    ]
    more = len(found) - _MOST_WORDS
    return (*found[:_MOST_WORDS], *([f"and {more} more like these"] if more > 0 else []))


def _of_pods(moves: Sequence[Move], asking: dict[str, str], highest: int) -> Iterator[str]:
    for move in moves:
        pod, name = move.pod, f"pod {move.pod.namespace}/{move.pod.name} of node {move.source}"
        if pod.uid in asking:
            yield f"{name} has {asking[pod.uid]}"
        if pod.priority > highest:
            yield f"{name} has the priority {pod.priority}, which is above {highest}"


def _of_budgets(moves: Sequence[Move], state: "ClusterState") -> Iterator[str]:
    for move in moves:
        names = [key for key, budget in state.budgets.items() if budget.covers(move.pod)]
        if len(names) > 1:  # the eviction API refuses those
            listed = " and ".join(f"{space}/{name}" for space, name in sorted(names))
            yield f"pod {move.pod.namespace}/{move.pod.name} has the disruption budgets {listed}"
    for (space, name), budget in sorted(state.budgets.items()):
        needed = sum(budget.covers(move.pod) for move in moves)
        if needed > budget.allowed:
            allowed = "no eviction" if budget.allowed <= 0 else f"{budget.allowed} of {needed}"
            yield f"the disruption budget {space}/{name} allows {allowed} now"


def _of_jobs(moves: Sequence[Move], objects: Objects) -> Iterator[str]:
    for (space, name), budget in sorted(budgets_of(objects.get(JOBS, ()), objects[PODS]).items()):
        needed = sum(budget.covers(move.pod) for move in moves)
        if needed > budget.allowed > 0:  # without any, its pods say so
            yield f"the Job {space}/{name} has {budget.allowed} of {needed} retries left"
