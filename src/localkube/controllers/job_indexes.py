"""Completion indexes as Jobs write them: "0,2-4". Pure."""

from collections.abc import Iterable, Iterator

Indexes = frozenset[int]
NONE: Indexes = frozenset()


def parse(text: str | None, completions: int) -> Indexes:
    """Those below `completions`; what is no index is passed over."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isascii() and first.isdigit() and (not last or last.isdigit()):
            end = min(int(last or first), completions - 1)
            found.update(range(int(first), end + 1))
    return frozenset(found)


def text_of(indexes: Iterable[int]) -> str:
    """Three and more in a row are written as a span."""
    parts = []
    for first, last in _spans(indexes):
        if last > first + 1:
            parts.append(f"{first}-{last}")
        else:
            parts += [str(index) for index in range(first, last + 1)]
    return ",".join(parts)


def _spans(indexes: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = -2
    for index in sorted(indexes):
        if index > last + 1:
            if first >= 0:
                yield first, last
            first = index
        last = index
    if first >= 0:
        yield first, last
