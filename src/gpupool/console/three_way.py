"""Joins two changes of the same data: what a form says, and what was typed as YAML. Pure.

`base` is what both began with. Where the form has changed nothing, the text wins, with all that the
form has no field for. Where only the form has changed something, the form wins; where both have,
the form wins too: it is what the visitor touched last.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from gpupool.contract.yaml_document import Path


class _Missing(Enum):
    MISSING = 0


MISSING = _Missing.MISSING
# How items of a list are known again; the first of these that all items have.
_NAMED_BY = (("name",), ("containerPort", "protocol"), ("port", "protocol"), ("key", "effect"))
# These are known by their place: a form has no field for the name of a container.
_BY_PLACE = frozenset({"containers"})


def joined(base: Any, text: Any, form: Any, key: str = "") -> Any:
    """MISSING: it is not there, or not to be."""
    if form == base:
        return text
    if text == base:
        return form
    if all(isinstance(each, dict) for each in (text, form)):
        return _joined_maps(base if isinstance(base, dict) else {}, text, form)
    if all(isinstance(each, list) for each in (text, form)):
        return _joined_lists(base if isinstance(base, list) else [], text, form, key)
    return form


def _joined_maps(base: dict[Any, Any], text: dict[Any, Any], form: dict[Any, Any]) -> Any:
    found = {
        key: joined(
            base.get(key, MISSING), text.get(key, MISSING), form.get(key, MISSING), str(key)
        )
        for key in (*text, *(key for key in form if key not in text))
    }
    return {key: value for key, value in found.items() if value is not MISSING}


def _joined_lists(base: list[Any], text: list[Any], form: list[Any], key: str) -> Any:
    names = _names(key, base, text, form)
    if names is None:
        return form
    maps = [
        dict(zip(each, items, strict=True))
        for each, items in zip(names, (base, text, form), strict=True)
    ]
    return list(_joined_maps(*maps).values())


def _names(key: str, *lists: list[Any]) -> list[list[Any]] | None:
    """Of each item of each list. None: they have none, or one name is there twice."""
    if key in _BY_PLACE:
        return [list(range(len(items))) for items in lists]
    for fields in _NAMED_BY:
        names = [[_name(item, fields) for item in items] for items in lists]
        if all(None not in each and len(set(each)) == len(each) for each in names):
            return names
    return None


def _name(item: Any, fields: tuple[str, ...]) -> tuple[str, ...] | None:
    if not isinstance(item, dict) or item.get(fields[0]) is None:
        return None
    # A protocol that is not said is TCP, for Kubernetes.
    return tuple(str(item.get(field) or "TCP") for field in fields)


def differences(made: Any, found: Any, path: Path = (), key: str = "") -> Iterator[Path]:
    """Where `found` says something that `made` does not, as deep as can be named."""
    if made == found:
        return
    if isinstance(made, dict) and isinstance(found, dict):
        for each in found:
            yield from differences(made.get(each, MISSING), found[each], (*path, each), str(each))
    elif isinstance(made, list) and isinstance(found, list):
        yield from _list_differences(made, found, path, key)
    else:
        yield path


def _list_differences(made: list[Any], found: list[Any], path: Path, key: str) -> Iterator[Path]:
    names = _names(key, made, found)
    if names is None:
        yield path
        return
    known = dict(zip(names[0], made, strict=True))
    for place, (name, item) in enumerate(zip(names[1], found, strict=True)):
        yield from differences(known.get(name, MISSING), item, (*path, place))
