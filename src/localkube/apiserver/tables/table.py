"""Objects as tables and as metadata only: the two other forms in which clients ask for them.

`table_bytes` is what the wire wants: stored bytes in, a Table's bytes out, and pods are decoded
only as far as their rows need. `table` does the same for objects that are already parsed.
"""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias

import msgspec
import orjson

from kubeclient.objects import Obj
from localkube.apiserver import data
from localkube.apiserver.kinds import Kind
from localkube.apiserver.status import ApiError, bad_request
from localkube.apiserver.tables import pods
from localkube.apiserver.tables.custom import custom_cells, custom_columns
from localkube.apiserver.tables.rows import ORDER, ROWS, created_at

META_V1 = "meta.k8s.io/v1"

Include: TypeAlias = Literal["None", "Metadata", "Object"]

_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


def include_object(text: str) -> Include | ApiError:
    """The query parameter includeObject."""
    match text:
        case "" | "Metadata":
            return "Metadata"
        case "None" | "Object":
            return text
        case _:
            why = "must be 'Metadata', 'Object', 'None', or empty"
            return bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"{orjson.dumps(text).decode()}: {why}"
            )


def table_columns(kind: Kind) -> list[Obj]:
    if kind.custom:
        return custom_columns(kind, *_builtin_columns()[""])
    found = _builtin_columns()
    return found.get(f"{kind.group}/{kind.plural}", found[""])


def row_cells(kind: Kind, thing: Obj, now_s: float) -> list[Any]:
    if kind.custom:
        return custom_cells(kind, thing, now_s)
    return ROWS.get(f"{kind.group}/{kind.plural}", created_at)(thing, now_s)


def table(
    kind: Kind, objects: Iterable[Obj], list_metadata: Obj, include: Include, now_s: float
) -> Obj:
    return {
        "kind": "Table",
        "apiVersion": META_V1,
        "metadata": list_metadata,
        "columnDefinitions": table_columns(kind),
        "rows": [_row(kind, thing, include, now_s) for thing in objects],
    }


def table_bytes(
    kind: Kind, bodies: Iterable[bytes], list_metadata: Obj, include: Include, now_s: float
) -> bytes:
    rows = row_bytes(kind, in_order(kind, bodies), include, now_s)
    return _joined(list_metadata, _columns_json(kind), rows)


def in_order(kind: Kind, bodies: Iterable[bytes]) -> Iterable[bytes]:
    order = None if kind.custom else ORDER.get(f"{kind.group}/{kind.plural}")
    if order is None:
        return bodies
    return sorted(bodies, key=lambda body: order(orjson.loads(body)))


def with_rows(kind: Kind, rows: list[bytes], list_metadata: Obj) -> list[bytes]:
    """The pieces of a Table; the wire joins as much at a time as it sends."""
    pieces = [b","] * (2 * len(rows) - 1)
    pieces[::2] = rows
    return [*_head(list_metadata, _columns_json(kind)), *pieces, b"]}"]


def further_table_bytes(
    kind: Kind, bodies: Iterable[bytes], list_metadata: Obj, include: Include, now_s: float
) -> bytes:
    """A table without column definitions: every event of a watch but the first."""
    return _joined(list_metadata, b"null", row_bytes(kind, bodies, include, now_s))


def partial_metadata(thing: Obj) -> Obj:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": META_V1,
        "metadata": thing.get("metadata") or {},
    }


def partial_metadata_bytes(body: bytes) -> bytes:
    return b"".join((_PARTIAL, _DECODE_PARTS(body).metadata, b"}"))


class _Parts(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_DECODE_PARTS = msgspec.json.Decoder(_Parts).decode


def _row(kind: Kind, thing: Obj, include: Include, now_s: float) -> Obj:
    try:
        row: Obj = {"cells": row_cells(kind, thing, now_s)}
        if _is_pod(kind):
            conditions = pods.row_conditions((thing.get("status") or {}).get("phase", ""))
            row |= {"conditions": conditions} if conditions else {}
    except Exception:  # noqa: BLE001  # one object must not hide all the others of a list
        row = {"cells": _unreadable(kind, thing)}
    return _with_object(row, thing, include)


def _unreadable(kind: Kind, thing: Obj) -> list[Any]:
    """The cells of an object that is not what its kind says: its name, to find it by."""
    return [thing["metadata"]["name"], *["<unknown>"] * (len(table_columns(kind)) - 1)]


def _with_object(row: Obj, thing: Obj, include: Include) -> Obj:
    match include:
        case "Object":
            row["object"] = thing
        case "Metadata":
            row["object"] = partial_metadata(thing)
        case "None":
            row["object"] = None
    return row


def row_bytes(
    kind: Kind, bodies: Iterable[bytes], include: Include, now_s: float
) -> Iterator[bytes]:
    if _is_pod(kind):
        return (_pod_row_bytes(kind, body, include, now_s) for body in bodies)
    return (orjson.dumps(_row(kind, orjson.loads(body), include, now_s)) for body in bodies)


def _pod_row_bytes(kind: Kind, body: bytes, include: Include, now_s: float) -> bytes:
    try:
        pod = pods.DECODE(body)
        conditions = pods.row_conditions(pod.status.phase)
        parts = [b'{"cells":', orjson.dumps(pods.stored_pod_cells(pod, now_s))]
    except Exception:  # noqa: BLE001  # as in `_row`
        thing = orjson.loads(body)
        return orjson.dumps(_with_object({"cells": _unreadable(kind, thing)}, thing, include))
    if conditions:
        parts += (b',"conditions":', orjson.dumps(conditions))
    parts.append(b',"object":')
    match include:
        case "Object":
            parts.append(body)
        case "Metadata":
            parts += (_PARTIAL, pod.metadata, b"}")
        case "None":
            parts.append(b"null")
    parts.append(b"}")
    return b"".join(parts)


def _joined(list_metadata: Obj, columns: bytes, rows: Iterator[bytes]) -> bytes:
    return b"".join((*_head(list_metadata, columns), b",".join(rows), b"]}"))


def _head(list_metadata: Obj, columns: bytes) -> tuple[bytes, ...]:
    return (
        b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":',
        orjson.dumps(list_metadata),
        b',"columnDefinitions":',
        columns,
        b',"rows":[',
    )


def _is_pod(kind: Kind) -> bool:
    return kind.plural == "pods" and kind.group == ""


@lru_cache(maxsize=256)
def _columns_json(kind: Kind) -> bytes:
    return orjson.dumps(table_columns(kind))


@cache
def _builtin_columns() -> dict[str, list[Obj]]:
    """In the file, each description stands once, and a column has its number."""
    recorded = data.read("columns.json")
    texts = recorded["descriptions"]
    fields = ("name", "type", "format", "description", "priority")
    return {
        resource: [
            dict(zip(fields, (name, kind, form, texts[text], priority), strict=True))
            for name, kind, form, text, priority in columns
        ]
        for resource, columns in recorded["columns"].items()
    }
