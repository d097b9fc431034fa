"""Wish: what one container asks for in the words of another system, read and not yet translated."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from gpupool.admission.asked import PodContainer, whole_number
from kubeclient.objects import Obj

WHOLE_CARD = Fraction(1)


class Wish(NamedTuple):
    """One of `whole`, `mib` and `part` is given."""

    container: PodContainer
    field: str  # where the amount was found
    said: str  # what was asked, in short
    cards: int = 1
    whole: bool = False  # whole cards
    mib: int = 0  # memory of each card
    part: Fraction | None = None  # of the memory of each card
    percent: int = 0  # of the compute of each card
    resources: tuple[str, ...] = ()  # that this wish replaces


@dataclass(slots=True)
class Reading:
    """What was found in a pod of the words of one system."""

    wishes: list[Wish] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # what cannot be meant exactly
    annotations: list[str] = field(default_factory=list)  # keys that were read
    # By annotation of theirs: the annotation of ours, and its value.
    choices: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what has no effect here


def annotations_of(pod: Obj) -> Obj:
    found: Obj = pod["metadata"].get("annotations") or {}
    return found


def labels_of(pod: Obj) -> Obj:
    found: Obj = pod["metadata"].get("labels") or {}
    return found


def amount(
    text: object, where: str, least: int, most: int | None = None, unit: str = ""
) -> int | str:
    """The whole number, or what is wrong with it."""
    number = whole_number(text)
    if number is not None and number >= least and (most is None or number <= most):
        return number
    upper = f"{least} or more" if most is None else f"{least} to {most}"
    return f"{where}: wanted a whole number{unit}, {upper}, found {text}"


def listed(said: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in said)
