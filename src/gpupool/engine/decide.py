"""decide: a node for a pod, or in words why there is none. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpupool.core.request import PodRequest
from gpupool.engine.filters import FILTERS
from gpupool.engine.usage import Usage

# Among this many nodes that will do, the best is taken; looking at more pays little.
ENOUGH_CANDIDATES = 50


@dataclass(frozen=True, slots=True)
class Placement:
    node: str
    looked_at: int  # how many nodes, so that the next decision starts after them


@dataclass(frozen=True, slots=True)
class Unschedulable:
    message: str


def decide(pod: PodRequest, nodes: Sequence[Usage], start: int) -> Placement | Unschedulable:
    """Looks at nodes from `start` on, round the end, until there are enough to choose from."""
    if pod.unsupported:
        listed = ", ".join(pod.unsupported)
        return Unschedulable(f"not placed: this scheduler does not support {listed} yet")
    refusals: Counter[str] = Counter()
    best: tuple[tuple[int, int], Usage] | None = None
    candidates = 0
    for offset in range(len(nodes)):
        usage = nodes[(start + offset) % len(nodes)]
        reasons = first_refusal(pod, usage)
        if reasons:
            refusals.update(reasons)
            continue
        candidates += 1
        score = _score(pod, usage)
        if best is None or score > best[0]:
            best = (score, usage)
        if candidates == ENOUGH_CANDIDATES:
            break
    if best is None:
        return Unschedulable(explain(len(nodes), refusals))
    return Placement(best[1].node.name, offset + 1)


def first_refusal(pod: PodRequest, usage: Usage) -> list[str]:
    for filter_ in FILTERS:
        reasons = filter_(pod, usage)
        if reasons:
            return reasons
    return []


def explain(nodes: int, refusals: Counter[str]) -> str:
    """As kube-scheduler says it: reasons with their counts, sorted as text."""
    if not nodes:
        return "no nodes available to schedule pods"
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in refusals.items()))
    return f"0/{nodes} nodes are available: {listed}."


def _score(pod: PodRequest, usage: Usage) -> tuple[int, int]:
    """Whole numbers only, so that equal clusters give equal decisions: preferences first, then the
    node with the most left; among equals the one with the fewest pods, which may ask for nothing
    and still want room."""
    wanted = sum(
        weight for weight, term in pod.preferred if term.matches(usage.node.name, usage.node.labels)
    )
    avoided = sum(
        1
        for taint in usage.node.taints
        if taint.effect == "PreferNoSchedule"
        and not any(t.tolerates(taint) for t in pod.tolerations)
    )
    offered, held = usage.node.allocatable, usage.held
    left = 0
    for name in ("cpu", "memory"):
        total = offered.get(name, 0)
        if total:
            left += 100 * (total - held.get(name, 0)) // total
    return wanted * 1000 - avoided * 500 + left, -len(usage.pods)
