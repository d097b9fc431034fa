"""What tells the elements of a merged list apart, and in which order they come.

Elements that the patch names come in the patch's order, all others in the object's. Where the two
meet, an element that only the object has stays in front of those that it stood in front of.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from localkube.apiserver.patch import go_text
from localkube.apiserver.patch.strategic_errors import (
    bad_type,
    no_key,
    no_merge_key,
    wrong,
)

Token: TypeAlias = Callable[[Any], Any]

_CONTAINERS = (dict, list)


def token_of(key: str) -> Token:
    """Elements are known by the value of the merge key; those without one by their own value."""
    if not key:
        return _scalar

    def token(item: Any) -> Any:
        if type(item) is not dict:
            raise bad_type("map[string]interface {}", item)
        if key not in item:
            raise no_merge_key(item, key)
        value = item[key]
        if isinstance(value, _CONTAINERS):
            raise wrong(f"merge key {key} of {go_text.plain(item)} is not a scalar")
        return type(value), value

    return token


def _scalar(item: Any) -> Any:
    if isinstance(item, _CONTAINERS):
        raise no_key()
    return type(item), item


def ordered(
    items: Sequence[Any], named: Sequence[Any], before: Sequence[Any], token: Token
) -> list[Any]:
    """`items` is the merged content, `named` the patch's order, `before` the object's."""
    marked = [(token(item), item) for item in items]
    if len(items) < 2:
        return list(items)
    by_patch, by_object = _places(named, token), _places(before, token)
    patched = [pair for pair in marked if pair[0] in by_patch]
    others = [pair for pair in marked if pair[0] not in by_patch]
    last = len(items)
    patched.sort(key=lambda pair: by_patch[pair[0]])
    others.sort(key=lambda pair: by_object.get(pair[0], last))
    return _interleaved(others, patched, by_object)


def _places(items: Sequence[Any], token: Token) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for place, item in enumerate(items):
        found.setdefault(token(item), place)
    return found


def _interleaved(
    others: Sequence[tuple[Any, Any]],
    patched: Sequence[tuple[Any, Any]],
    places: dict[Any, int],
) -> list[Any]:
    result: list[Any] = []
    left = 0
    for mark, item in patched:
        place = places.get(mark, -1)
        while left < len(others) and places.get(others[left][0], place) < place:
            result.append(others[left][1])
            left += 1
        result.append(item)
    return result + [item for _, item in others[left:]]
