"""Shape: what field ownership needs to know of a Schema, worked out once per field.

Ownership has its own idea of what a field is. A leaf is owned as a whole: a scalar, and also a
list or map that is declared atomic. Everything else is owned piece by piece.

    LEAF       a scalar, an atomic list or map, raw bytes of somebody else's object
    OBJECT     named fields
    MAP        any key, all values of one shape
    KEYED      a list whose elements are told apart by keys
    SET        a list of scalars without duplicates
    DEDUCED    nothing is declared: maps are owned by key, lists as a whole
"""

from enum import StrEnum
from typing import Any

from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch import path_element
from localkube.apiserver.schema.node import Schema, Type

_MAX_SHAPES = 20_000

# Written by the server, or naming the object: nobody owns these.
_UNOWNED = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
# What else a write to /status leaves alone, beside the spec.
_WITHOUT_METADATA = frozenset(
    {
        "apiservices",
        "customresourcedefinitions",
        "flowschemas",
        "prioritylevelconfigurations",
        "resourceclaims",
        "validatingadmissionpolicies",
        "volumeattachments",
    }
)
# What is asked for in a signing request never changes, and nobody owns it.
_FIXED_SPEC = "certificatesigningrequests"
_METADATA_LEFT_ALONE = {
    "deployments": frozenset({"labels"}),
    "pods": frozenset({"deletionTimestamp", "ownerReferences"}),
}


class Form(StrEnum):
    LEAF = "leaf"
    OBJECT = "object"
    MAP = "map"
    KEYED = "keyed"
    SET = "set"
    DEDUCED = "deduced"


class Shape:
    """`hidden` fields are passed over, as if they were not there."""

    __slots__ = (
        "_children",
        "_items",
        "claims",
        "created",
        "form",
        "fresh",
        "hidden",
        "keys",
        "lists",
        "plans",
        "schema",
    )

    def __init__(self, form: Form, schema: Schema, hidden: frozenset[str] = frozenset()) -> None:
        self.form = form
        self.schema = schema
        self.hidden = hidden
        self._children: dict[str, Shape] = {}
        self._items: Shape | None = None
        self.keys = tuple(sorted(schema.list_keys))
        # How objects with one set of field names are walked: see field_walk.
        self.plans: dict[tuple[str, ...], Any] = {}
        self.fresh: dict[tuple[str, ...], Any] = {}
        self.lists: dict[bytes, Any] = {}
        self.created: dict[bytes, Any] = {}  # of whole new objects: see field_compare
        self.claims: dict[tuple[str, ...], Any] = {}

    def child(self, name: str) -> "Shape":
        found = self._children.get(name)
        if found is None:
            declared = self.schema.fields.get(name)
            if declared is None:
                return self.element()
            found = self._children[name] = shape_of(declared)
        return found

    def element(self) -> "Shape":
        """The shape of a list's elements and of a map's values."""
        if self._items is None:
            self._items = DEDUCED if self.schema.items is None else shape_of(self.schema.items)
        return self._items

    def declares(self, name: str) -> bool:
        return name in self.schema.fields

    def replace_child(self, name: str, child: "Shape") -> None:
        self._children[name] = child


DEDUCED = Shape(Form.DEDUCED, Schema())

# By identity: schemas are not hashable. Each row holds its schema, so no identity is used twice.
_shapes: dict[int, Shape] = {}
_roots: dict[tuple[int, str, str], Shape] = {}


def shape_of(schema: Schema) -> Shape:
    found = _shapes.get(id(schema))
    if found is None:
        if len(_shapes) >= _MAX_SHAPES:  # custom kinds have come and gone many times
            _shapes.clear()
            _roots.clear()
        found = _shapes[id(schema)] = Shape(_form(schema), schema)
    return found


def _form(schema: Schema) -> Form:
    if schema.type is Type.LIST:
        return {"set": Form.SET, "map": Form.KEYED}.get(schema.list_type, Form.LEAF)
    if schema.atomic_map or schema.name == "RawExtension":
        return Form.LEAF
    if schema.type is Type.MAP:
        return Form.MAP
    if schema.type is Type.OBJECT:
        return Form.OBJECT if schema.fields else Form.DEDUCED
    return Form.DEDUCED if schema.type is Type.ANY else Form.LEAF


def root_of(schema: Schema, kind: Kind, subresource: str) -> Shape:
    """The shape of a whole object, without what a write to `subresource` cannot set."""
    key = (id(schema), kind.plural if kind.has_status else "", subresource)
    found = _roots.get(key)
    if found is None:
        whole = shape_of(schema)
        hidden, hidden_metadata = _hidden(kind, subresource)
        found = Shape(Form.OBJECT, schema, hidden)
        metadata = whole.child("metadata")
        found.replace_child("metadata", Shape(metadata.form, metadata.schema, hidden_metadata))
        _roots[key] = found
    return found


def _hidden(kind: Kind, subresource: str) -> tuple[frozenset[str], frozenset[str]]:
    if kind.plural == _FIXED_SPEC and not kind.custom and subresource != "status":
        return _UNOWNED | ({"spec", "status"} if not subresource else {"spec"}), _UNOWNED_METADATA
    if not subresource:
        return _UNOWNED | ({"status"} if kind.has_status else set()), _UNOWNED_METADATA
    if subresource != "status":
        return _UNOWNED, _UNOWNED_METADATA
    hidden = _UNOWNED | {"spec"}
    if kind.custom:
        return hidden, _UNOWNED_METADATA
    if kind.plural in _WITHOUT_METADATA:
        return hidden | {"metadata"}, _UNOWNED_METADATA
    return hidden, _UNOWNED_METADATA | _METADATA_LEFT_ALONE.get(kind.plural, frozenset())


def element_of(shape: Shape, item: Any) -> str | None:
    """The path element of a list's item; None where the item has none."""
    if shape.form is _SET:
        return path_element.of_value(item) if isinstance(item, _SCALAR) else None
    if type(item) is not dict:
        return None
    keys = shape.keys
    defaults = shape.schema.key_defaults
    if len(keys) == 1:
        value = item.get(keys[0], defaults.get(keys[0]))
        return path_element.of_key(keys[0], value) if isinstance(value, _SCALAR) else None
    found: list[Any] = []
    for key in keys:
        value = item.get(key)
        if value is None:
            value = defaults.get(key)
        if isinstance(value, _SCALAR):
            found += key, value
    return path_element.of_keys(*found) if found else None


_SCALAR = (str, int, float)
_SET = Form.SET
