"""The two steps that change the object in a server-side apply.

    merged(live, config)        the configuration laid over the live object
    pruned(value, last, kept)   without what the applier owned last time and nobody owns now

Both return values that share with their arguments what did not change.
"""

from collections.abc import Iterator
from typing import Any

from localkube.apiserver.patch.field_set import FieldSet, is_member
from localkube.apiserver.patch.path_element import SELF
from localkube.apiserver.patch.shape import Form, Shape, element_of


def merged(shape: Shape, live: Any, config: Any) -> Any:
    """Both are there. Where one of them is empty, or null, it is as the other says."""
    form = shape.form
    if form is Form.LEAF or (not live and not config):
        return config
    if form is Form.KEYED or form is Form.SET:
        return _merged_lists(shape, live, config)
    return _merged_maps(shape, live, config)


def _merged_maps(shape: Shape, live: Any, config: Any) -> Any:
    if type(live) is not dict:
        return config
    if type(config) is not dict:
        return live if config is None and live else config
    result = dict(live)
    for name, value in config.items():
        if name in live:
            result[name] = merged(shape.child(name), live[name], value)
        else:
            result[name] = value
    return result


def _merged_lists(shape: Shape, live: Any, config: Any) -> Any:
    if not config or type(config) is not list:
        return live
    if not live or type(live) is not list:
        return config
    return _zipped(shape, live, config)


def _zipped(shape: Shape, live: list[Any], config: list[Any]) -> list[Any]:
    """One list over the other. The applied items keep their order; the live ones that are not
    applied stay in front of the shared item that they stood in front of, if that can be."""
    child = shape.element()
    # Items without a key get names that no path element has, and other ones on each side, so that
    # they never match.
    there = [element_of(shape, item) or f"?{place}" for place, item in enumerate(live)]
    here = [element_of(shape, item) or f"!{place}" for place, item in enumerate(config)]
    before: dict[str, Any] = {}
    for element, item in zip(there, live, strict=True):
        # Duplicates cannot be merged: the applied item replaces them.
        before[element] = None if element in before else item
    after = dict(zip(here, config, strict=True))
    result = []
    for place, element in _merged_order(there, here):
        if element not in after:
            result.append(live[place])
        elif before.get(element) is None:
            result.append(after[element])
        else:
            result.append(merged(child, before[element], after[element]))
    return result


def _merged_order(there: list[str], here: list[str]) -> Iterator[tuple[int, str]]:
    """Each element of the result once, with its place in `there` if it comes from there."""
    applied, taken = set(here), set[str]()
    known = set(there)
    shared = [element for element in reversed(here) if element in known]
    left = right = 0
    while left < len(there) or right < len(here):
        if left < len(there):
            element = there[left]
            if element not in applied:
                yield left, element
                left += 1
                continue
            # An applied item comes where the applied order has it, not where it was.
            if right < len(here) and shared and element not in (shared[-1], here[right]):
                left += 1
                continue
            left += element in taken or here[right : right + 1] == [element]
        if right < len(here):
            yield -1, here[right]
            taken.add(here[right])
            if shared and shared[-1] == here[right]:
                shared.pop()
            right += 1


def pruned(shape: Shape, value: Any, last: FieldSet, kept: FieldSet) -> Any:
    """`last`: what the applier owned; `kept`: what anybody owns now, the applier included.

    What became empty, and nobody owns, is null, which is as good as absent.
    """
    if shape.form is Form.KEYED or shape.form is Form.SET:
        return _pruned_list(shape, value, last, kept)
    if shape.form is Form.LEAF or type(value) is not dict:
        return value
    result = dict(value)
    for element, below in last.items():
        name = element[2:]
        if name not in result or element == SELF:
            continue
        owned = kept.get(element)
        # To own a part of a struct is to own the struct; a key of a map is owned by itself.
        if owned is None if shape.declares(name) else _is_lost(below, owned):
            del result[name]
        elif below:
            result[name] = _inner(shape.child(name), result[name], below, owned)
    return result


def _pruned_list(shape: Shape, value: Any, last: FieldSet, kept: FieldSet) -> Any:
    if type(value) is not list:
        return value
    child = shape.element()
    result = []
    for item in value:
        element = element_of(shape, item) or ""
        below, owned = last.get(element), kept.get(element)
        if below is not None and _is_lost(below, owned):
            continue
        result.append(_inner(child, item, below, owned) if below else item)
    return result


def _inner(shape: Shape, value: Any, below: FieldSet, owned: FieldSet | None) -> Any:
    left = pruned(shape, value, below, owned or {})
    return left if left or (owned is not None and is_member(owned)) else None


def _is_lost(below: FieldSet, owned: FieldSet | None) -> bool:
    return is_member(below) and (owned is None or not is_member(owned))
