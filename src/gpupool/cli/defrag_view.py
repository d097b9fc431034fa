"""What `gpupool defrag` prints, for people and for programs. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import Document, Tone
from gpupool.core.gpu import Allocation
from gpupool.engine.defrag import Move, Plan


@dataclass(frozen=True, slots=True)
class Proposal:
    pods: tuple[str, ...]  # for which room is made; empty: for the largest job
    plan: Plan | None  # None: there is none
    largest_before: int  # whole cards of one node that a pod could have
    largest_after: int
    placed: int = 0  # of the pods, where there is no plan for all
    enough_moves: int = 0  # with so many there would be a plan; 0: with no number of them
    in_the_way: tuple[str, ...] = ()  # what people have set, without which there would be a plan
    running: frozenset[str] = frozenset()  # uids of pods that had a node, for the plan


def page_of(proposal: Proposal) -> Prose:
    return Prose("DefragPlan", list(_lines(proposal)), _document(proposal))


def _lines(proposal: Proposal) -> Iterator[Line]:
    plan = proposal.plan
    if plan is None:
        yield Line(_no_plan(proposal))
        return
    if not plan.moves:
        yield Line("Nothing has to move: there is room for all of it now.", Tone.GOOD)
        return
    count = "1 pod" if len(plan.moves) == 1 else f"{len(plan.moves)} pods"
    yield Line(f"{count} would move, and start anew:")
    for move in plan.moves:
        yield Line(f"  {_name(move)}: {_way(move)}{_lost(move)}", indent=4)
    yield Line("")
    yield Line("Then there is room:")
    if not proposal.pods:
        before, after = proposal.largest_before, proposal.largest_after
        words = f"for a pod with {_whole_cards(after)}; now at most {before} fit"
        yield Line(f"  {words}: {_where(plan, 0)}", indent=4)
    for number, name in enumerate(proposal.pods):
        yield Line(f"  {name}: {_where(plan, number)}", indent=4)


def _whole_cards(count: int) -> str:
    return "1 whole card" if count == 1 else f"{count} whole cards"


def _no_plan(proposal: Proposal) -> str:
    if not proposal.pods:
        if not proposal.largest_before:
            return "No move gains anything: no whole card is free, and no move would free one."
        cards = _whole_cards(proposal.largest_before)
        return f"No move gains anything: a pod with {cards} fits, and no larger one would."
    total = len(proposal.pods)
    beside = "with room for those before it " if proposal.placed else ""
    said = (
        f"There is no plan: {beside}no moves make room for {proposal.pods[proposal.placed]} "
        f"({proposal.placed} of {total} pods would fit)."
    )
    if proposal.enough_moves:
        return f"{said} With more moves there is one: --max-moves {proposal.enough_moves}."
    if proposal.in_the_way:
        return f"{said} In the way: {'; '.join(proposal.in_the_way)}."
    if proposal.placed:
        # Room is made for one after the other, and each pod moves once.
        said = f"{said} Asking for fewer at a time may find moves for all of them."
    return (
        f"{said} See why it fits nowhere: gpupool explain -f FILE. See what a further node would "
        "do: gpupool whatif -f FILE."
    )


def _name(move: Move) -> str:
    return f"{move.pod.namespace}/{move.pod.name}"


def _way(move: Move) -> str:
    return f"{move.source} to {move.target.node}{_cards(move.target.allocation)}"


def _lost(move: Move) -> str:
    return f", running since {move.pod.started}" if move.pod.started else ""


def _where(plan: Plan, number: int) -> str:
    node, allocation = plan.placements[number]
    return f"{node}{_cards(allocation)}"


def _cards(allocation: Allocation) -> str:
    indexes = sorted({share.index for gpus in allocation.containers for share in gpus.shares})
    return f", card {', '.join(map(str, indexes))}" if indexes else ""


def _document(proposal: Proposal) -> Document:
    plan = proposal.plan
    return {
        "pods": list(proposal.pods),
        "moves": None if plan is None else [_move_fields(move) for move in plan.moves],
        "inTheWay": list(proposal.in_the_way),
        "placements": []
        if plan is None
        else [{"node": node, "cards": _uuids(given)} for node, given in plan.placements],
        "largestBefore": proposal.largest_before,
        "largestAfter": proposal.largest_after,
    }


def _move_fields(move: Move) -> Document:
    return {
        "namespace": move.pod.namespace,
        "name": move.pod.name,
        "source": move.source,
        "node": move.target.node,
        "cards": _uuids(move.target.allocation),
        "runningSince": move.pod.started or None,
    }


def _uuids(allocation: Allocation) -> list[str]:
    return [share.uuid for gpus in allocation.containers for share in gpus.shares]
