"""What `gpupool whatif` prints, for people and for programs. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import Document, Tone
from gpupool.core.gpu import Allocation
from gpupool.scheduler.what_if import (
    MOST_FURTHER_COPIES,
    MOST_FURTHER_NODES,
    Answer,
    Fate,
    PodFate,
    further_node,
)

_MOST_NODES = 8  # listed one by one
_MOST_PODS = 20


def page_of(answer: Answer) -> Prose:
    parts = [list(part) for part in (_of_new(answer), _of_moved(answer.moved), _of_waiting(answer))]
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [*([Line("")] if lines else []), *part]
    return Prose("WhatIf", lines or [Line("No pod would move or start.")], _document(answer))


def _of_new(answer: Answer) -> Iterator[Line]:
    for fate in answer.fates:
        yield from _of_workload(fate)
    if answer.additions:
        yield Line(f"All would fit with {_added(answer)}.", indent=2)
    elif not answer.all_fit:
        yield Line(
            f"{MOST_FURTHER_NODES} further nodes of any pool would not be enough.",
            indent=2,
        )


def _added(answer: Answer) -> str:
    nodes = " and ".join(
        f"{_count(each.nodes, 'further node')} of pool {each.pool}" for each in answer.additions
    )
    waits = any(not (pod.node or pod.is_lost) for pod in (*answer.waiting, *answer.moved))
    return f"{nodes}, if no pod that waits takes its place" if waits else nodes


def _of_workload(fate: Fate) -> Iterator[Line]:
    workload, placed = fate.workload, len(fate.placed)
    name = f"{workload.kind} {workload.namespace}/{workload.name}"
    fits = placed == workload.copies
    tone = Tone.GOOD if fits else Tone.CAUTION
    pods = _count(workload.copies, "pod")
    said = f"{pods} would fit" if fits else f"{placed} of {pods} would fit"
    said = said if workload.copies else "asks for no pods"
    yield Line(f"{name}: {said}", tone, toned=len(name), indent=2)
    by_place = Counter((each.node, _cards(each.allocation)) for each in fate.placed)
    for (node, cards), count in by_place.most_common(_MOST_NODES):
        times = f", {count} times" if count > 1 else ""
        yield Line(f"  {_shown(node)}{cards}{times}", indent=4)
    if len(by_place) > _MOST_NODES:
        yield Line(f"  and {len(by_place) - _MOST_NODES} more places", indent=4)
    if fits and fate.more:
        at_least = "at least " if fate.more == MOST_FURTHER_COPIES else ""
        more = _count(fate.more, "more copy", "more copies") if placed else _count(fate.more, "pod")
        yield Line(f"  {at_least}{more} would fit{', too' if placed else ''}", indent=4)
    if fate.why:
        yield Line(f"  the next one would not: {fate.why}", indent=4)


def _of_moved(moved: Sequence[PodFate]) -> Iterator[Line]:
    if moved:
        yield Line("Pods of nodes that go:")
    for pod in moved[:_MOST_PODS]:
        yield Line(f"  {pod.namespace}/{pod.name}: {_moved_words(pod)}", indent=4)
    yield from _and_more(moved)


def _moved_words(pod: PodFate) -> str:
    if pod.is_lost:
        return "would be lost: no controller makes it again"
    return f"would go to {_shown(pod.node)}" if pod.node else f"would wait: {pod.why}"


def _of_waiting(answer: Answer) -> Iterator[Line]:
    starting = [pod for pod in answer.waiting if pod.node]
    if not answer.waiting:
        return
    count = _count(len(answer.waiting), "pod waits", "pods wait")
    yield Line(f"{count} now; {len(starting)} of {len(answer.waiting)} would start.")
    for pod in starting[:_MOST_PODS]:
        yield Line(f"  {pod.namespace}/{pod.name}: would go to {_shown(pod.node)}", indent=4)
    yield from _and_more(starting)
    for name in answer.displaced[:_MOST_PODS]:
        yield Line(f"  {name}: would start if it were not for the new pods", indent=4)


def _and_more(pods: Sequence[PodFate]) -> Iterator[Line]:
    if len(pods) > _MOST_PODS:
        yield Line(f"  and {len(pods) - _MOST_PODS} more", indent=4)


def _shown(node: str) -> str:
    added = further_node(node)
    return f"further node {added[1] + 1} of pool {added[0]}" if added else node


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _cards(allocation: Allocation) -> str:
    shares = [share for gpus in allocation.containers for share in gpus.shares]
    if not shares:
        return ""
    indexes = ", ".join(map(str, sorted({share.index for share in shares})))
    return f", card {indexes}"


def _document(answer: Answer) -> Document:
    return {
        "allFit": answer.all_fit,
        "workloads": [_fate_fields(fate) for fate in answer.fates],
        "additions": [{"pool": each.pool, "nodes": each.nodes} for each in answer.additions],
        "moved": [_pod_fields(pod) for pod in answer.moved],
        "waiting": [_pod_fields(pod) for pod in answer.waiting],
        "displaced": list(answer.displaced),
    }


def _fate_fields(fate: Fate) -> Document:
    workload = fate.workload
    return {
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "pods": workload.copies,
        "placements": [
            {"node": each.node, "cards": list(_uuids(each.allocation))} for each in fate.placed
        ],
        "furtherCopies": fate.more,
        "message": fate.why,
    }


def _uuids(allocation: Allocation) -> Iterator[str]:
    for gpus in allocation.containers:
        yield from (share.uuid for share in gpus.shares)


def _pod_fields(pod: PodFate) -> Document:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "node": pod.node or None,
        "wasOn": pod.was_on or None,
        "lost": pod.is_lost,
        "message": pod.why,
    }
