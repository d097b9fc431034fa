"""Field sets of objects: three questions, each a walk along the Shape.

    added(value)            every field, as if the whole value were new
    declared(value)         the fields that an applied configuration lays claim to
    compared(old, new)      (changed or new, gone)

`added` is on the path of every create. Objects of one kind mostly have the same few sets of field
names, so a Shape remembers for each what an object with these names comes to: a ready-made set,
and the fields whose share of it depends on their value.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gpupool.localcluster.apiserver.patch.field_set import LEAF, FieldSet, in_order, is_member
from gpupool.localcluster.apiserver.patch.path_element import SELF
from gpupool.localcluster.apiserver.patch.shape import DEDUCED, Form, Shape, element_of

Walk: TypeAlias = Callable[[Shape, Any], FieldSet | None]
# A set to start from, and (field, its path element, its shape, how to walk it) of the rest.
Plan: TypeAlias = tuple[FieldSet, tuple[tuple[str, str, Shape, Walk], ...]]
Comparison: TypeAlias = tuple[FieldSet | None, FieldSet | None]

_SELF: FieldSet = {SELF: LEAF}
# A client that sends ever new sets of field names must not fill the memory.
_MAX_REMEMBERED = 256


def added(shape: Shape, value: Any) -> FieldSet:
    return _ADDED[shape.form](shape, value)


def _added_leaf(shape: Shape, value: Any) -> FieldSet:
    return LEAF


def _added_object(shape: Shape, value: Any) -> FieldSet:
    if not value or type(value) is not dict:
        return LEAF
    names = tuple(value)
    plan: Plan | None = shape.plans.get(names)
    fields, walks = plan or _remembered(shape.plans, names, _plan(shape, names, _ADDED, _SELF))
    if not walks:
        return fields
    fields = fields.copy()
    for name, element, child, walk in walks:
        fields[element] = walk(child, value[name])  # type: ignore[assignment]  # added: never None
    return fields


def _added_map(shape: Shape, value: Any) -> FieldSet:
    if not value or type(value) is not dict:
        return LEAF
    child = shape.element()
    fields: FieldSet = {SELF: LEAF}
    if child.form is Form.LEAF:
        for name in sorted(value):
            fields["f:" + name] = LEAF
        return fields
    walk = _ADDED[child.form]
    for name in sorted(value):
        fields["f:" + name] = walk(child, value[name])
    return fields


def _added_deduced(shape: Shape, value: Any) -> FieldSet:
    if not value or type(value) is not dict:
        return LEAF
    fields: FieldSet = {SELF: LEAF}
    for name in sorted(value):
        fields["f:" + name] = _added_deduced(shape, value[name])
    return fields


def _added_list(shape: Shape, value: Any) -> FieldSet:
    if not value or type(value) is not list:
        return LEAF
    child = shape.element()
    walk = _ADDED[child.form]
    fields: FieldSet = {SELF: LEAF}
    for item in value:
        element = element_of(shape, item)
        if element is not None:
            # Duplicates are owned as one thing: what is in them cannot be told apart.
            fields[element] = LEAF if element in fields else walk(child, item)
    return in_order(fields) if len(fields) > 2 else fields


_ADDED: dict[Form, Callable[[Shape, Any], FieldSet]] = {
    Form.LEAF: _added_leaf,
    Form.OBJECT: _added_object,
    Form.MAP: _added_map,
    Form.KEYED: _added_list,
    Form.SET: _added_list,
    Form.DEDUCED: _added_deduced,
}


def _plan(
    shape: Shape, names: tuple[str, ...], table: Mapping[Form, Walk], start: FieldSet
) -> Plan:
    fields = dict(start)
    walks = []
    for name in sorted(name for name in names if name not in shape.hidden):
        child = shape.child(name)
        fields["f:" + name] = LEAF
        if child.form is not Form.LEAF:
            walks.append((name, "f:" + name, child, table[child.form]))
    return fields, tuple(walks)


def _remembered(plans: dict[tuple[str, ...], Any], names: tuple[str, ...], plan: Plan) -> Plan:
    if len(plans) >= _MAX_REMEMBERED:
        plans.clear()
    plans[names] = plan
    return plan


def declared(shape: Shape, value: Any) -> FieldSet | None:
    return _DECLARED[shape.form](shape, value)


def _declared_object(shape: Shape, value: Any) -> FieldSet | None:
    """Only what is below: a struct is not claimed by setting a field of it."""
    if not value or type(value) is not dict:
        return LEAF
    names = tuple(value)
    plan: Plan | None = shape.claims.get(names)
    fields, walks = plan or _remembered(shape.claims, names, _plan(shape, names, _DECLARED, LEAF))
    fields = fields.copy()
    for name, element, child, walk in walks:
        found = walk(child, value[name])
        if not shape.declares(name):
            found = _claimed(found)
        if found is None:
            del fields[element]
        else:
            fields[element] = found
    return fields or None


def _claimed(below: FieldSet | None) -> FieldSet:
    """The thing itself, and what is below it."""
    if not below:
        return LEAF
    return below if is_member(below) else {SELF: LEAF, **below}


def _declared_map(shape: Shape, value: Any) -> FieldSet | None:
    if not value or type(value) is not dict:
        return LEAF
    child = shape.element()
    walk = _DECLARED[child.form]
    return {"f:" + name: _claimed(walk(child, value[name])) for name in sorted(value)}


def _declared_list(shape: Shape, value: Any) -> FieldSet | None:
    if type(value) is not list:
        return LEAF
    child = shape.element()
    walk = _DECLARED[child.form]
    fields: FieldSet = {}
    for item in value:
        element = element_of(shape, item)
        if element is not None:
            fields[element] = LEAF if element in fields else _claimed(walk(child, item))
    return in_order(fields) or None


_DECLARED: dict[Form, Walk] = {
    Form.LEAF: _added_leaf,
    Form.OBJECT: _declared_object,
    Form.MAP: _declared_map,
    Form.KEYED: _declared_list,
    Form.SET: _declared_list,
    Form.DEDUCED: lambda _, value: _declared_map(DEDUCED, value) if type(value) is dict else LEAF,
}


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
    changed = _fresh(shape, new_map, old_map)
    gone = _fresh(shape, old_map, new_map)
    new_names, gone_names = len(changed), len(gone)
    hidden = shape.hidden
    for name, value in old_map.items():
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


def _fresh(shape: Shape, here: dict[str, Any], there: dict[str, Any]) -> FieldSet:
    """Everything that is only `here`; the set is the caller's own."""
    names = tuple([name for name in here if name not in there]) if there else tuple(here)
    if not names:
        return {}
    if shape.form is not Form.OBJECT:
        child = shape.element()
        return {"f:" + name: added(child, here[name]) for name in sorted(names)}
    plan: Plan | None = shape.fresh.get(names)
    fields, walks = plan or _remembered(shape.fresh, names, _plan(shape, names, _ADDED, LEAF))
    fields = fields.copy()
    for name, element, child, walk in walks:
        fields[element] = walk(child, here[name])  # type: ignore[assignment]  # added: never None
    return fields


def _compared_lists(shape: Shape, old: Any, new: Any) -> Comparison:
    if not old and type(new) is list:
        changed = _added_list(shape, new).copy()
        del changed[SELF]
        return changed or None, None
    before, after = _by_element(shape, old), _by_element(shape, new)
    child = shape.element()
    changed = {}
    gone: FieldSet = {}
    for element, items in after.items():
        previous = before.get(element, [])
        if len(previous) < 2 and len(items) < 2:
            if previous:
                _put(changed, gone, element, compared(child, previous[0], items[0]))
            else:
                changed[element] = added(child, items[0])
        elif len(previous) > 1 and len(items) > 1:
            if previous != items:
                changed[element] = LEAF
        elif len(previous) > 1:
            changed[element] = added(child, items[0])
            gone[element] = LEAF
        else:
            changed[element] = LEAF
            if previous:
                gone[element] = added(child, previous[0])
    for element, items in before.items():
        if element not in after:
            gone[element] = LEAF if len(items) > 1 else added(child, items[0])
    return in_order(changed) or None, in_order(gone) or None


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
