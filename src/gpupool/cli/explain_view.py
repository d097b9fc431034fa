"""What `gpupool explain` answers about a pod, for people and for programs. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpupool.cli.card_tables import isolation_field
from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import Document, Tone
from gpupool.core.gpu import Allocation
from gpupool.scheduler.answers import Outlook, outlook_words, placed_words

PLACED, FITS, WAITS, ENDED, REFUSED = "placed", "fits", "waits", "ended", "refused"
_TONES = {PLACED: Tone.GOOD, FITS: Tone.GOOD, WAITS: Tone.CAUTION, REFUSED: Tone.BAD}


@dataclass(frozen=True, slots=True)
class Answer:
    kind: str  # Pod, or the workload that makes it
    namespace: str
    name: str
    verdict: str
    node: str = ""  # where it is or would go
    allocation: Allocation = field(default_factory=Allocation)
    message: str = ""  # why it waits or is refused, or how it has ended
    outlook: Outlook | None = None
    hints: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        name = f"{self.namespace}/{self.name}"
        return name if self.kind == "Pod" else f"A pod of {self.kind} {name}"


def page_of(answers: Sequence[Answer]) -> Prose:
    lines: list[Line] = []
    for answer in answers:
        lines += [*([Line("")] if lines else []), *_lines(answer)]
    return Prose("PodExplanationList", lines, {"items": [_fields(each) for each in answers]})


def text_of(answer: Answer) -> str:
    hints = "".join(f"\nHint: {hint}\n" for hint in answer.hints)
    return _answer_words(answer) + hints


def _answer_words(answer: Answer) -> str:
    if answer.outlook is not None:
        return outlook_words(answer.shown, answer.outlook)
    if answer.verdict == PLACED:
        return placed_words(answer.shown, answer.node, answer.allocation)
    if answer.verdict == ENDED:
        return f"{answer.shown} has ended: {answer.message}.\n"
    return f"{answer.shown} would be refused: {answer.message}\n"


def _lines(answer: Answer) -> Iterator[Line]:
    first, *rest = text_of(answer).splitlines()
    tone = _TONES.get(answer.verdict, Tone.PLAIN)
    yield Line(first, tone, toned=len(first), indent=2)
    # What belongs to a line above it stays to the right of it.
    yield from (Line(line, indent=4 if line.startswith(" ") else 2) for line in rest)


def _fields(answer: Answer) -> Document:
    outlook = answer.outlook
    return {
        "kind": answer.kind,
        "namespace": answer.namespace,
        "name": answer.name,
        "verdict": answer.verdict,
        "node": answer.node or None,
        "message": answer.message,
        "shares": list(_shares(answer.allocation)),
        "nodes": [
            {"name": node.node, "reasons": list(node.reasons), "cards": list(node.cards)}
            for node in (outlook.nodes if outlook and outlook.nodes else ())
        ],
        "roomOn": (outlook.room_on or None) if outlook else None,
        "victims": list(outlook.victims) if outlook else [],
        "nextStep": (outlook.next_step or None) if outlook else None,
        "hints": list(answer.hints),
    }


def _shares(allocation: Allocation) -> Iterator[Document]:
    for gpus in allocation.containers:
        for share in gpus.shares:
            yield {
                "container": gpus.container,
                "card": share.index,
                "uuid": share.uuid,
                "memoryMiB": share.memory_mib,
                "units": share.units,
                "cardUnits": share.card_units,
                "computePercent": share.percent or None,
                "isolation": isolation_field(gpus.wall),
            }
