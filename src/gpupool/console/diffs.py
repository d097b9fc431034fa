"""What is different between two texts, line by line. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

_CONTEXT = 3  # lines around each change
# Of both texts, between the first and the last difference. Comparing takes up to the cube of them,
# and whoever wrote both texts can have that: this is a second.
_MOST_LINES = 4_000


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: str  # "+", "-", " "; "…": lines that are left out
    text: str


class TooLong(Exception):
    """Too many lines to compare."""


def diff(old: str, new: str) -> tuple[DiffLine, ...]:
    """Empty: they are the same. Raises TooLong. May take a second: not for the event loop."""
    before, after = old.splitlines(), new.splitlines()
    start = max(0, _same(before, after) - _CONTEXT)
    before, after = before[start:], after[start:]
    end = max(0, _same(before[::-1], after[::-1]) - _CONTEXT)
    before, after = before[: len(before) - end], after[: len(after) - end]
    if len(before) + len(after) > _MOST_LINES:
        raise TooLong
    groups = list(SequenceMatcher(None, before, after).get_grouped_opcodes(_CONTEXT))
    return tuple(
        line
        for index, group in enumerate(groups)
        for line in _lines(start + index, group, before, after)
    )


def _same(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the beginning on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _lines(
    lines_before: int,
    group: list[tuple[str, int, int, int, int]],
    before: list[str],
    after: list[str],
) -> Iterator[DiffLine]:
    if lines_before or group[0][1]:
        yield DiffLine("…", "")
    for kind, i, j, k, end in group:
        if kind == "equal":
            yield from (DiffLine(" ", text) for text in before[i:j])
            continue
        yield from (DiffLine("-", text) for text in before[i:j])
        yield from (DiffLine("+", text) for text in after[k:end])
