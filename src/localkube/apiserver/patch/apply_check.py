"""Whether an applied configuration fits its schema, in the words of server-side apply.

Apply is stricter than the other writes: fields that are not declared, values of another type and
list elements that cannot be told apart are refused, whatever the fieldValidation.
"""

from collections.abc import Callable, Iterator
from typing import Any

from localkube.apiserver.patch import go_text, path_element
from localkube.apiserver.patch.shape import Form, Shape, element_of, shape_of
from localkube.apiserver.schema.node import Schema, Type

Problem = tuple[str, str]  # path, text


def problems(schema: Schema, config: Any) -> str:
    """Everything that is wrong, as one text; empty if nothing is."""
    found = [f"{path}: {text}" if path else text for path, text in _checked(schema, config, "")]
    if len(found) < 2:
        return "".join(found)
    return "\n  ".join(["errors:", *found])


def _checked(schema: Schema, value: Any, path: str) -> Iterator[Problem]:
    if value is None:
        return
    if schema.type in _SCALARS:
        is_right, wanted = _SCALARS[schema.type]
        if not is_right(value):
            yield path, wanted(value)
    elif schema.type is Type.LIST:
        yield from _checked_list(schema, value, path)
    elif schema.type is Type.OBJECT or schema.type is Type.MAP:
        yield from _checked_map(schema, value, path)


def _checked_map(schema: Schema, value: Any, path: str) -> Iterator[Problem]:
    if type(value) is not dict:
        yield path, f"expected map, got &{{{go_text.plain(value)}}}"
        return
    is_open = not schema.fields or schema.preserve_unknown
    for name, item in value.items():
        declared = schema.fields.get(name, schema.items)
        if declared is not None:
            yield from _checked(declared, item, f"{path}.{name}")
        elif not is_open:
            yield f"{path}.{name}", "field not declared in schema"
            return


def _checked_list(schema: Schema, value: Any, path: str) -> Iterator[Problem]:
    if type(value) is not list:
        yield path, f"expected list, got &{{{go_text.plain(value)}}}"
        return
    shape = shape_of(schema)
    seen = set()
    for place, item in enumerate(value):
        step = f"[{place}]"
        if shape.form is not Form.LEAF:
            element = element_of(shape, item)
            if element is None:
                yield path, f"element {place}: {_why_no_element(shape, item)}"
                return
            step = path_element.text(element)
            if element in seen:
                yield path, f"duplicate entries for key {step}"
            seen.add(element)
        if schema.items is not None:
            yield from _checked(schema.items, item, path + step)


def _why_no_element(shape: Shape, item: Any) -> str:
    if shape.form is Form.SET:
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        return "associative list without keys has an element that's an explicit null"
    if item is None:
        return "associative list with keys may not have a null element"
    if type(item) is not dict:
        return "associative list with keys may not have non-map elements"
    keys = " ".join(map(go_text.quoted, shape.schema.list_keys))
    return (
        f"associative list with keys has an element that omits all key fields [{keys}]"
        " (and doesn't have default values for any key fields)"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _no_number(value: Any) -> str:
    return f"expected numeric (int or float), got {go_text.type_name(value)}"


def _no_text(value: Any) -> str:
    return f"expected string, got &value.valueUnstructured{{Value:{go_text.source(value)}}}"


def _no_boolean(value: Any) -> str:
    return f"expected boolean, got &{{{go_text.plain(value)}}}"


def _no_scalar(value: Any) -> str:
    return f"expected any scalar, got &{{{go_text.plain(value)}}}"


_SCALARS: dict[Type, tuple[Callable[[Any], bool], Callable[[Any], str]]] = {
    Type.STRING: (_is_text, _no_text),
    Type.BYTES: (_is_text, _no_text),
    Type.INTEGER: (_is_number, _no_number),
    Type.NUMBER: (_is_number, _no_number),
    Type.BOOLEAN: (_is_boolean, _no_boolean),
    Type.TIME: (_is_scalar, _no_scalar),
    Type.INT_OR_STRING: (_is_scalar, _no_scalar),
    Type.QUANTITY: (_is_scalar, _no_scalar),
}
