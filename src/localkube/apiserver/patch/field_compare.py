"""What changed between two objects, as field sets: (changed or new, gone)."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.patch.field_set import LEAF, FieldSet, in_order
from localkube.apiserver.patch.field_walk import added, fresh
from localkube.apiserver.patch.path_element import SELF
from localkube.apiserver.patch.shape import Form, Shape, element_of

# A client that sends ever new objects, or huge ones, must not fill the memory.
_MAX_REMEMBERED = 256
_MAX_REMEMBERED_BYTES = 16 * 1024

# None: nothing at all. The set of an element that is itself a member may be empty.
Comparison: TypeAlias = tuple[FieldSet | None, FieldSet | None]


def set_in(root: Shape, blank: Obj, new: Obj) -> FieldSet | None:
    """What is changed in a new object, compared with `blank`, of which `root` has but one.

    Objects of one template differ in what nobody owns: their names, their times. So the same answer
    is given again for whatever is alike but for that.
    """
    hidden = root.child("metadata").hidden
    owned = {name: value for name, value in new.items() if name not in root.hidden}
    owned["metadata"] = {name: v for name, v in new["metadata"].items() if name not in hidden}
    key = orjson.dumps(owned)
    known: FieldSet | None = root.created.get(key)
    if known is None:
        known, _ = compared(root, blank, new)
        if len(key) <= _MAX_REMEMBERED_BYTES:
            if len(root.created) >= _MAX_REMEMBERED:
                root.created.clear()
            root.created[key] = known
    return known


def compared(shape: Shape, old: Any, new: Any) -> Comparison:
    """Both are there; what is only in one of them is `added` to its side."""
    if old is new or old == new:
        return None, None
    form = shape.form
    if form is Form.LEAF or (not old and not new):
        return LEAF, None
    if form is Form.DEDUCED and type(old) is not dict and type(new) is not dict:
        return LEAF, None
    if form is Form.KEYED or form is Form.SET:
        return _compared_lists(shape, old, new)
    return _compared_maps(shape, old, new)


def _compared_maps(shape: Shape, old: Any, new: Any) -> Comparison:
    old_map = old if type(old) is dict else {}
    new_map = new if type(new) is dict else {}
    changed = fresh(shape, new_map, old_map)
    gone = fresh(shape, old_map, new_map)
    new_names, gone_names = len(changed), len(gone)
    hidden = shape.hidden
    for name, value in old_map.items():
        # Patches share unchanged parts with the old object: most pairs are the same object in
        # memory.
        if name in new_map and name not in hidden and value is not new_map[name]:
            found = compared(shape.child(name), value, new_map[name])
            _put(changed, gone, "f:" + name, found)
    # One of them is no map at all (null aside): the value itself is another one.
    if type(old) is not type(new) and old is not None and new is not None:
        changed = {SELF: LEAF, **changed} if changed else LEAF
        return in_order(changed), gone or None
    if len(changed) != new_names:
        changed = in_order(changed)
    if len(gone) != gone_names:
        gone = in_order(gone)
    return changed or None, gone or None


def _compared_lists(shape: Shape, old: Any, new: Any) -> Comparison:
    if not old and type(new) is list:
        everything = added(shape, new).copy()
        del everything[SELF]
        return everything or None, None
    before, after = _by_element(shape, old), _by_element(shape, new)
    child = shape.element()
    changed: FieldSet = {}
    gone: FieldSet = {}
    for element in before | after:
        pair = before.get(element, _NONE), after.get(element, _NONE)
        _put(changed, gone, element, _compared_items(child, *pair))
    return in_order(changed) or None, in_order(gone) or None


def _compared_items(child: Shape, old: Sequence[Any], new: Sequence[Any]) -> Comparison:
    """Of items with the same path element. Duplicates are owned as one thing."""
    if len(old) > 1 and len(new) > 1:
        return (LEAF if old != new else None), None
    if len(old) == 1 and len(new) == 1:
        return compared(child, old[0], new[0])
    return _fields_of(child, new), _fields_of(child, old)


def _fields_of(child: Shape, items: Sequence[Any]) -> FieldSet | None:
    if not items:
        return None
    return LEAF if len(items) > 1 else added(child, items[0])


_NONE: Sequence[Any] = ()


def _by_element(shape: Shape, value: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in value if type(value) is list else ():
        element = element_of(shape, item)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found


def _put(changed: FieldSet, gone: FieldSet, element: str, found: Comparison) -> None:
    if found[0] is not None:
        changed[element] = found[0]
    if found[1] is not None:
        gone[element] = found[1]
