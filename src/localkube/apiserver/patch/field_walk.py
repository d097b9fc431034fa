"""Field sets of values, found by walking them along their Shape.

    added(value)            every field, as if the whole value were new
    fresh(here, there)      the fields of those parts of a map that only one of two maps has
    declared(value)         the fields that an applied configuration lays claim to

`added` is on the path of every create. Objects of one kind mostly have the same few sets of field
names, so a Shape remembers for each what an object with these names comes to: a ready-made set,
and the fields whose share of it depends on their value. Likewise it remembers what lists came to.
Sets that were handed out are shared, so nobody may change one.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import orjson

from localkube.apiserver.patch.field_set import LEAF, FieldSet, in_order, is_member
from localkube.apiserver.patch.path_element import SELF
from localkube.apiserver.patch.shape import DEDUCED, Form, Shape, element_of

Walk: TypeAlias = Callable[[Shape, Any], FieldSet | None]
# A set to start from, and (field, its path element, its shape, how to walk it) of the rest.
Plan: TypeAlias = tuple[FieldSet, tuple[tuple[str, str, Shape, Walk], ...]]

_SELF: FieldSet = {SELF: LEAF}
# A client that sends ever new sets of field names must not fill the memory.
_MAX_REMEMBERED = 256
_MAX_REMEMBERED_BYTES = 16 * 1024


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
    # The set of a remembered plan is shared: only a copy may be changed.
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
    # The containers of a template's pods are the same in all of them.
    key = orjson.dumps(value)
    known: FieldSet | None = shape.lists.get(key)
    if known is None:
        known = _added_items(shape, value)
        if len(key) <= _MAX_REMEMBERED_BYTES:
            if len(shape.lists) >= _MAX_REMEMBERED:
                shape.lists.clear()
            shape.lists[key] = known
    return known


def _added_items(shape: Shape, value: list[Any]) -> FieldSet:
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
    if sum(map(len, names)) <= _MAX_REMEMBERED_BYTES:
        if len(plans) >= _MAX_REMEMBERED:
            plans.clear()
        plans[names] = plan
    return plan


def fresh(shape: Shape, here: dict[str, Any], there: dict[str, Any]) -> FieldSet:
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
