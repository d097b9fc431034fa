"""What is different between two texts, line by line. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

_CONTEXT = 3  # lines around each change
_MOST_LINES = 20_000  # of a text: comparing takes long for more


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: str  # "+", "-", " "; "…": lines that are left out
    text: str


class TooLong(Exception):
    """Too many lines to compare."""


def diff(old: str, new: str) -> tuple[DiffLine, ...]:
    """Empty: they are the same. Raises TooLong."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MOST_LINES:
        raise TooLong
    groups = list(SequenceMatcher(None, before, after).get_grouped_opcodes(_CONTEXT))
    return tuple(
        line for index, group in enumerate(groups) for line in _lines(index, group, before, after)
    )


def _lines(
    index: int, group: list[tuple[str, int, int, int, int]], before: list[str], after: list[str]
) -> Iterator[DiffLine]:
    if index or group[0][1]:
        yield DiffLine("…", "")
    for kind, i, j, k, end in group:
        if kind == "equal":
            yield from (DiffLine(" ", text) for text in before[i:j])
            continue
        yield from (DiffLine("-", text) for text in before[i:j])
        yield from (DiffLine("+", text) for text in after[k:end])
