"""Strategic merge patch: merge patch that knows which lists have keys, and directives.

    $patch: replace | delete              of a map: do that instead of merging; in an element of
                                          a list: replace the list, delete the element
    $setElementOrder/<list>: [...]        the order of the list's elements
    $deleteFromPrimitiveList/<list>: [..] values to take out of a list of scalars
    $retainKeys: [...]                    all other keys of the map go (one-of structs)

Which lists merge, and by which key, is the schema's to say. Errors are those of Kubernetes, whose
answer to most wrong directives is a 500 that says why.
"""

from collections.abc import Sequence
from typing import Any, Final

from kubeclient.objects import Obj
from localkube.apiserver.patch import body, go_text
from localkube.apiserver.patch.body import refuse_too_deep
from localkube.apiserver.patch.json_patch import rejected
from localkube.apiserver.patch.strategic_errors import (
    bad_directive,
    bad_type,
    no_key,
    unknown_field,
    wrong,
)
from localkube.apiserver.patch.strategic_order import ordered, token_of
from localkube.apiserver.schema.node import Schema, Type
from localkube.apiserver.status import bad_request

_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE_FROM: Final = "$deleteFromPrimitiveList"
_ANY: Final = Schema(preserve_unknown=True)
_CONTAINERS: Final = (dict, list)


@refuse_too_deep
def apply_strategic(obj: Obj, patch: bytes | Obj, schema: Schema) -> Obj:
    """A new object that shares with the arguments what did not change; its metadata is its own."""
    result = _merged_map(obj, body.as_map(patch) or {}, schema)
    if isinstance(result.get("metadata"), dict):
        result["metadata"] = dict(result["metadata"])
    return result


def _merged_map(original: Obj, patch: Obj, schema: Schema) -> Obj:
    if _PATCH in patch:
        return _directed(patch)
    result = dict(original)
    changes = dict(patch)
    _retain_keys(result, changes)
    for key in [key for key in changes if key.startswith(_ORDER)]:
        _set_order(result, changes, key, schema)
    for key in [key for key in changes if key.startswith(_DELETE_FROM)]:
        _delete_from(result, _list_name(key, _DELETE_FROM), changes.pop(key))
    for key, change in changes.items():
        if change is None:
            result.pop(key, None)
        elif key in result and type(result[key]) is type(change):
            result[key] = _merged(result[key], change, _field(schema, key, change))
        else:
            _take(result, key, change)
    return result


def _directed(patch: Obj) -> Obj:
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    raise bad_directive(directive, patch)


def _take(result: Obj, key: str, change: Any) -> None:
    """A value of the patch as it is, where there is nothing to merge it with."""
    if isinstance(change, dict) and _PATCH in change:
        result.pop(key, None)
    else:
        result[key] = _plain(change)


def _plain(value: Any) -> Any:
    """Without nulls, and without maps that carry a directive."""
    if isinstance(value, dict):
        return {
            key: _plain(item)
            for key, item in value.items()
            if item is not None and not _is_directed(item)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directed(item)]
    return value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _retain_keys(result: Obj, changes: Obj) -> None:
    if _RETAIN_KEYS not in changes:
        return
    kept = changes.pop(_RETAIN_KEYS)
    wanted = [
        key
        for key, change in changes.items()
        if change is not None and not key.startswith((_DELETE_FROM, _ORDER))
    ]
    if not isinstance(kept, list) or any(key not in kept for key in wanted):
        raise bad_request("invalid patch format of retainKeys")
    for key in [key for key in result if key not in kept]:
        del result[key]


def _field(schema: Schema, name: str, value: Any) -> Schema:
    """What the schema says of a field that is about to be merged."""
    found = schema.fields.get(name)
    if found is not None:
        return found
    is_closed = schema.type is Type.OBJECT and schema.fields and not schema.preserve_unknown
    if is_closed and isinstance(value, _CONTAINERS):
        raise unknown_field(schema.name, name)
    return schema.items or _ANY


def _merged(original: Any, change: Any, schema: Schema) -> Any:
    """Two values of the same type."""
    if isinstance(change, dict):
        if "replace" in schema.patch_strategy:
            return change
        return _merged_map(original, change, schema)
    if isinstance(change, list) and "merge" in schema.patch_strategy:
        return _merged_list(original, change, schema)
    return change


def _merged_list(original: list[Any], change: list[Any], schema: Schema) -> list[Any]:
    if not original and not change:
        return original
    kept, named, content = _merged_content(original, change, schema)
    return ordered(content, named, kept, token_of(schema.patch_merge_key))


def _merged_content(
    original: list[Any], change: list[Any], schema: Schema
) -> tuple[list[Any], list[Any], list[Any]]:
    """What is left of the object's elements, the patch's elements, and both, in no order yet."""
    key = schema.patch_merge_key
    if not isinstance(_first_of_all(original, change), dict):
        # As a set: what is there twice is there once.
        token = token_of("")
        return original, change, list({token(item): item for item in original + change}.values())
    if not key:
        raise no_key()
    kept, named = _with_directives(original, change, key)
    return kept, named, _with_elements(kept, named, key, schema.items or _ANY)


def _first_of_all(*lists: Sequence[Any]) -> Any:
    """The first element, if all are of its type, and that is no list."""
    items = [item for elements in lists for item in elements]
    if not items:
        raise wrong("no elements in any of the given slices")
    if isinstance(items[0], list):
        raise rejected()
    if any(type(item) is not type(items[0]) for item in items) or items[0] is None:
        shown = go_text.plain([list(elements) for elements in lists])
        raise wrong(f"list element types are not identical: {shown}")
    return items[0]


def _with_directives(
    original: list[Any], change: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """The object's elements after deletions and replacement, and the patch's other elements."""
    token = token_of(key)
    named = [item for item in change if _PATCH not in item]
    gone = set()
    replaces = False
    for item in change:
        if _PATCH not in item:
            continue
        if item[_PATCH] == "delete":
            gone.add(token(item))
        elif item[_PATCH] == "replace":
            replaces = True
        elif item[_PATCH] == "merge":
            raise wrong("merging lists cannot yet be specified in the patch")
        else:
            raise bad_directive(item[_PATCH], item)
    if replaces:
        return named, []
    return [item for item in original if key not in item or token(item) not in gone], named


def _with_elements(kept: list[Any], named: list[Any], key: str, schema: Schema) -> list[Any]:
    token = token_of(key)
    content = list(kept)
    where = {}
    # Backwards, so that of two elements with the same key the first one is merged.
    for place, item in reversed(list(enumerate(content))):
        where[token(item)] = place
    for item in named:
        place = where.get(token(item), len(content))
        if place < len(content):
            content[place] = _merged_map(content[place], item, schema)
        else:
            where[token(item)] = place
            content.append(_plain(item))
    return content


def _list_name(key: str, prefix: str) -> str:
    head, slash, name = key.partition("/")
    if head == prefix and slash:
        return name
    what = "primitive" if prefix == _DELETE_FROM else "setElementOrder"
    raise bad_request(f"invalid patch format of {what} list")


def _delete_from(result: Obj, name: str, values: Any) -> None:
    found = result.get(name)
    if values is None:
        result.pop(name, None)
    if not isinstance(found, list) or not isinstance(values, list) or not (found or values):
        return
    _first_of_all(found, values)
    token = token_of("")
    gone = set(map(token, values))
    result[name] = [item for item in found if token(item) not in gone]


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise bad_type("[]interface {}", value)


def _set_order(result: Obj, changes: Obj, directive: str, schema: Schema) -> None:
    """Merges one list, of which the patch gives the order."""
    order = _as_list(changes.pop(directive))
    name = _list_name(directive, _ORDER)
    original = _as_list(result.get(name, []))
    change = _as_list(changes.get(name, []))
    field = _field(schema, name, order)
    _check_order(change, order, field.patch_merge_key)
    token = token_of(field.patch_merge_key)
    if name in changes:
        del changes[name]
        _first_of_all(original, change)
        if name in result and "merge" in field.patch_strategy:
            kept, named, content = _merged_content(original, change, field)
            # New elements take the places of deleted ones, as far as these go.
            before = content[: len(original)]
            result[name] = ordered(ordered(content, named, kept, token), order, before, token)
        else:
            result[name] = ordered(_plain(change), order, original, token)
    elif original:
        result[name] = ordered(original, order, original, token)


def _check_order(change: list[Any], order: list[Any], key: str) -> None:
    """The patch's elements must be named by the order, and come in it."""
    if not change or not order:
        return
    token = token_of(key)
    wanted = [item for item in change if not (_is_directed(item) and item[_PATCH] == "delete")]
    place = 0
    for item in order:
        while place < len(wanted) and _is_directed(wanted[place]):
            place += 1
        if place < len(wanted) and token(wanted[place]) == token(item):
            place += 1
    if place < len(wanted):
        raise wrong(
            f"The order in patch list:\n{go_text.plain(change)}\n"
            f" doesn't match {_ORDER} list:\n{go_text.plain(order)}\n"
        )
