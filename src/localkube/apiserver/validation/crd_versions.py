"""The versions in a CustomResourceDefinition, but for their schemas (see schema/crd_rules.py).

The server keeps what all versions have in common only once, so errors in it name one place above
the versions.
"""

import re
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    invalid,
    required,
    too_many,
)
from localkube.apiserver.validation.formats import dns_1035_label, size
from localkube.apiserver.validation.own_limits import excess

_SHARED = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (*("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),)
# Kubernetes has no limit. Each version is a kind of its own in discovery and OpenAPI.
_VERSIONS_MAX = 100
_WARNING_MAX = 256
_SELECTABLE_MAX = 8
_PATH_STEP = re.compile(r"[.\[\]]|[^.\[\]]+")


def versions(errors: Errors, listed: list[Obj]) -> None:
    if len(listed) > _VERSIONS_MAX:
        errors.append(excess("spec.versions", len(listed), _VERSIONS_MAX))
    kept = _without_common(listed)
    for place, version in enumerate(kept):
        path, name = f"spec.versions[{place}]", version["name"]
        if dns_1035_label(name):
            errors.append(invalid(f"{path}.name", name, ",".join(dns_1035_label(name))))
        _warning(errors, version, f"{path}.deprecationWarning")
        _content(errors, version, path, "`version.schema.openAPIV3Schema` is not included")
    names = [version["name"] for version in kept]
    if len(set(names)) < len(names):
        errors.append(invalid("spec.versions", kept or None, "must contain unique version names"))
    if sum(version["storage"] for version in kept) != 1:
        what = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", kept or None, what))
    if names and names[0] and dns_1035_label(names[0]):
        errors.append(invalid("spec.version", names[0], ",".join(dns_1035_label(names[0]))))


def common(errors: Errors, listed: list[Obj]) -> None:
    """What stands in every version alike."""
    if listed:
        shared = {name: listed[0][name] for name in _common(listed) if name in listed[0]}
        _content(errors, shared, "spec", "validations.schema is included")


def _common(listed: list[Obj]) -> list[str]:
    first = {name: listed[0].get(name) for name in _SHARED} if listed else {}
    return [name for name in first if all(one.get(name) == first[name] for one in listed)]


def _without_common(listed: list[Obj]) -> list[Obj]:
    dropped = _common(listed)
    return [
        {name: value for name, value in version.items() if name not in dropped}
        for version in listed
    ]


def _content(errors: Errors, holder: Obj, path: str, selectable_when: str) -> None:
    _subresources(errors, holder.get("subresources", {}), f"{path}.subresources")
    for number, column in enumerate(holder.get("additionalPrinterColumns", ())):
        _column(errors, column, f"{path}.additionalPrinterColumns[{number}]")
    fields = holder.get("selectableFields")
    if fields:
        # Fields and schema must stand in the same place, both above the versions or in each.
        schema = holder.get("schema", {}).get("openAPIV3Schema")
        if schema is None:
            what = f"may only be set when {selectable_when}"
            errors.append(invalid(f"{path}.selectableFields", "", what))
        else:
            _selectable(errors, fields, schema, f"{path}.selectableFields")


def _warning(errors: Errors, version: Obj, path: str) -> None:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        errors.append(invalid(path, text, "can only be set for deprecated versions"))
        return
    if size(text) > _WARNING_MAX:
        errors.append(invalid(path, text, f"must be <= {_WARNING_MAX} characters long"))
    if not text:
        errors.append(invalid(path, text, "must not be an empty string"))
    for place, character in enumerate(text):
        if not character.isprintable():
            at = len(text[:place].encode())
            what = (
                "must only contain printable UTF-8 characters; non-printable character found at"
                f" index {at}"
            )
            errors.append(invalid(path, text, what))
            break


def _subresources(errors: Errors, subresources: Obj, path: str) -> None:
    scale = subresources.get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text, at = scale[name], f"{path}.scale.{name}"
        if not text:
            errors.append(required(at))
        elif _simple_path(errors, text, at) and not text.startswith(root):
            what = f"should be a json path under {root[:-1]}"
            errors.append(invalid(at, text, what))
    text, at = scale.get("labelSelectorPath"), f"{path}.scale.labelSelectorPath"
    if text and _simple_path(errors, text, at) and not text.startswith((".spec.", ".status.")):
        what = "should be a json path under either .spec or .status"
        errors.append(invalid(at, text, what))


def _simple_path(errors: Errors, text: str, path: str) -> bool:
    if not text.startswith("."):
        errors.append(invalid(path, text, "must be a simple json path starting with ."))
        return False
    return True


def _column(errors: Errors, column: Obj, path: str) -> None:
    if not column["name"]:
        errors.append(required(f"{path}.name"))
    known = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column["type"]:
        errors.append(required(f"{path}.type", known))
    elif column["type"] not in _COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", column["type"], known))
    form = column.get("format")
    if form and form not in _COLUMN_FORMATS:
        what = f"must be one of {','.join(_COLUMN_FORMATS)}"
        errors.append(invalid(f"{path}.format", form, what))
    if not column["jsonPath"]:
        errors.append(required(f"{path}.JSONPath"))
    else:
        _simple_path(errors, column["jsonPath"], f"{path}.JSONPath")


def _selectable(errors: Errors, fields: list[Obj], schema: Obj, path: str) -> None:
    seen: set[str] = set()
    for place, field in enumerate(fields):
        text, at = field["jsonPath"], f"{path}[{place}].jsonPath"
        if not text:
            errors.append(required(at))
            continue
        found = _followed(text, schema)
        if isinstance(found, str):
            errors.append(invalid(at, text, f"is an invalid path: {found}"))
            continue
        if text.split(".")[1] == "metadata":
            errors.append(invalid(at, text, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            what = (
                "must point to a field of type string, boolean or integer. Enum string fields and"
                " strings with formats are allowed."
            )
            errors.append(invalid(at, text, what))
        if text in seen:
            errors.append(duplicate(at, text))
        seen.add(text)
    if len(seen) > _SELECTABLE_MAX:
        errors.append(too_many(path, len(seen), _SELECTABLE_MAX))


def _followed(text: str, schema: Obj) -> Obj | str:
    """The schema that a path leads to, or why it does not."""
    steps = iter(_PATH_STEP.findall(text))
    for step in steps:
        if step == "[":
            return "array notation is not allowed"
        if step != ".":
            return f"expected [ or . but got: {step}"
        name = next(steps, None)
        if name is None:
            return "unexpected end of JSON path"
        inner: Any = schema.get("additionalProperties")
        if schema.get("properties"):
            inner = schema["properties"].get(name)
        if not isinstance(inner, dict):
            return "does not refer to a valid field"
        schema = inner
    return schema
