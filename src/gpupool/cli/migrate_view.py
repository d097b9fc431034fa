"""What `gpupool migrate` prints, for people and for programs. Pure."""

from collections import Counter
from collections.abc import Iterator

from gpupool.cli.migration import REFUSED, UNCHANGED, Move, Plan
from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import Document, Tone

_MOST_NODES = 5  # listed by name


def page_of(plan: Plan) -> Prose:
    fields = {"items": [_fields(move) for move in plan.moves], "steps": list(plan.steps)}
    return Prose("MigrationPlan", list(_lines(plan)), fields)


def _lines(plan: Plan) -> Iterator[Line]:
    if not plan.moves:
        yield Line("No workload here asks for GPUs.")
        return
    for move in plan.moves:
        yield from _of_move(move)
    if plan.steps:
        yield Line("")
        yield Line("Steps:")
    for number, step in enumerate(plan.steps, 1):
        yield Line(f"  {number}. {step}", indent=5)


def _of_move(move: Move) -> Iterator[Line]:
    name = f"{move.kind} {move.namespace}/{move.name}"
    tone = Tone.BAD if move.verdict == REFUSED else Tone.CAUTION if move.waiting else Tone.GOOD
    yield Line(f"{name}: {_outcome(move)}", tone, toned=len(name), indent=2)
    if move.verdict == UNCHANGED:
        yield Line("  asks as gpupool does; nothing to change", indent=4)
    yield from (Line(f"  {note}", indent=4) for note in move.notes)
    if move.why:
        yield Line(f"  {move.why}", indent=4)


def _outcome(move: Move) -> str:
    if move.verdict == REFUSED:
        return "would be refused"
    pods = "1 pod" if move.pods == 1 else f"{move.pods} pods"
    if not move.nodes:
        return f"{pods}, would wait" if move.pods else "no pods"
    fits = f"{len(move.nodes)} of {pods} would fit" if move.waiting else f"{pods} would fit"
    by_node = Counter(move.nodes).most_common()
    shown = ", ".join(node for node, _ in by_node[:_MOST_NODES])
    more = f" and {len(by_node) - _MOST_NODES} more" if len(by_node) > _MOST_NODES else ""
    return f"{fits}, on {shown}{more}"


def _fields(move: Move) -> Document:
    return {
        "kind": move.kind,
        "namespace": move.namespace,
        "name": move.name,
        "verdict": move.verdict,
        "notes": list(move.notes),
        "pods": move.pods,
        "nodes": list(move.nodes),
        "waiting": move.waiting,
        "message": move.why,
    }
