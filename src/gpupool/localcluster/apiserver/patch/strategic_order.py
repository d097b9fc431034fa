"""In which order the elements of a merged list come.

Elements that the patch names come in the patch's order, all others in the object's. Where the two
meet, an element that only the object has stays in front of those that it stood in front of.
"""

from collections.abc import Callable, Sequence
from typing import Any

Token = Callable[[Any], Any]  # what tells elements apart: the value of their merge key


def ordered(
    items: Sequence[Any], named: Sequence[Any], before: Sequence[Any], token: Token
) -> list[Any]:
    """`items` is the merged content, `named` the patch's order, `before` the object's."""
    by_patch, by_object = places(named, token), places(before, token)
    far = len(items) + len(named)
    patched = [item for item in items if token(item) in by_patch]
    others = [item for item in items if token(item) not in by_patch]
    patched.sort(key=lambda item: by_patch[token(item)])
    others.sort(key=lambda item: by_object.get(token(item), far))
    return _interleaved(others, patched, lambda item: by_object.get(token(item)))


def places(items: Sequence[Any], token: Token) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for place, item in enumerate(items):
        found.setdefault(token(item), place)
    return found


def _interleaved(
    others: Sequence[Any], patched: Sequence[Any], place: Callable[[Any], int | None]
) -> list[Any]:
    result: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(patched):
        one, two = place(others[left]), place(patched[right])
        if one is not None and two is not None and one < two:
            result.append(others[left])
            left += 1
        else:
            result.append(patched[right])
            right += 1
    return [*result, *others[left:], *patched[right:]]
