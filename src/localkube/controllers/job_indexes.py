"""Sets of completion indexes of a Job, kept as spans: a Job may have two thousand million indexes,
and anybody may ask for all of them in a few characters. Pure."""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Indexes:
    spans: tuple[tuple[int, int], ...] = ()  # first and last; in order, and never adjacent

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.spans)

    def __bool__(self) -> bool:
        return bool(self.spans)

    def __contains__(self, index: int) -> bool:
        place = bisect.bisect(self.spans, index, key=lambda span: span[0])
        return place > 0 and index <= self.spans[place - 1][1]

    def __or__(self, other: "Indexes") -> "Indexes":
        return _joined(self.spans + other.spans)

    def __and__(self, other: "Indexes") -> "Indexes":
        found, ours, theirs = [], list(reversed(self.spans)), list(reversed(other.spans))
        while ours and theirs:
            (first, last), (begin, end) = ours[-1], theirs[-1]
            if max(first, begin) <= min(last, end):
                found.append((max(first, begin), min(last, end)))
            (ours if last < end else theirs).pop()
        return Indexes(tuple(found))

    def missing(self, completions: int) -> Iterator[int]:
        """The indexes of the Job that are not in here, in order."""
        begin = 0
        for first, last in self.spans:
            yield from range(begin, first)
            begin = last + 1
        yield from range(begin, completions)


NO_INDEXES = Indexes()


def indexes_of(numbers: Iterable[int]) -> Indexes:
    return _joined((number, number) for number in numbers)


def _joined(spans: Iterable[tuple[int, int]]) -> Indexes:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return Indexes(tuple(joined))


def parse_indexes(text: str | None, completions: int) -> Indexes:
    """Parses "0,2-4". Ignores indexes beyond `completions`, and text that is no number."""
    spans = []
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if _is_number(first) and (not last or _is_number(last)):
            span = int(first), min(int(last or first), completions - 1)
            if span[0] <= span[1]:
                spans.append(span)
    return _joined(spans)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10  # of 32 bits


def text_of_indexes(indexes: Indexes) -> str:
    """Three or more indexes in a row are written as a span: "0,2-4"."""
    return ",".join(
        f"{first}-{last}" if last > first + 1 else ",".join(map(str, range(first, last + 1)))
        for first, last in indexes.spans
    )
