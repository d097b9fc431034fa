"""What an answer looks like: JSON, YAML, a Table, or metadata only; chosen by the Accept header."""

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache, partial
from typing import Any

import orjson

from kubeclient.objects import Obj
from kubeclient.turns import Turns
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.decode.body import ACCEPTED
from localkube.apiserver.decode.weight import is_long
from localkube.apiserver.defaults.convert import from_storage
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.status import ApiError
from localkube.apiserver.store.record import Record
from localkube.apiserver.tables import table as tables
from localkube.apiserver.verbs.yaml_answer import portions, yaml_bytes, yaml_items, yaml_list


class Form(Enum):
    JSON = "json"
    YAML = "yaml"
    TABLE = "table"
    PARTIAL = "partial"
    PARTIAL_LIST = "partial list"


_AVAILABLE = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch"
)


def wanted(request: Request) -> Form:
    return _wanted(request.headers.get("accept", ""))


@lru_cache(maxsize=256)
def _wanted(accept: str) -> Form:
    if not accept:
        return Form.JSON
    transforms = False
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        values = dict(p.split("=", 1) for p in parameters if "=" in p)
        asked = values.get("as", "")
        # Protobuf is always offered with JSON beside it; only Go programs could read it anyway.
        if media in ("application/json", "application/*", "*/*"):
            if not asked:
                return Form.JSON
            if values.get("g") == "meta.k8s.io" and values.get("v") in ("v1", "v1beta1"):
                found = _TRANSFORMS.get(asked)
                if found is not None:
                    return found
            transforms = True
        elif media == "application/yaml" and not asked:
            return Form.YAML
    if transforms:
        raise status.not_acceptable(ACCEPTED)
    raise status.failure(406, "NotAcceptable", _AVAILABLE, details={})


_TRANSFORMS = {
    "Table": Form.TABLE,
    "PartialObjectMetadata": Form.PARTIAL,
    "PartialObjectMetadataList": Form.PARTIAL_LIST,
}


def _wrong_number(kind: Kind, asked: str, found: str) -> ApiError:
    """The client asked for the form of a list and gets one object, or the other way round."""
    package = "unstructured" if kind.custom else kind.group.partition(".")[0] or "core"
    message = f"you requested {asked}, but the requested object is {found}"
    suffix = "List" if found == "a list" else ""
    name = "Unstructured" if kind.custom else kind.kind
    return status.failure(406, "NotAcceptable", f"{message} (*{package}.{name}{suffix})")


def as_served(record: Record, kind: Kind) -> Obj:
    """The stored object in the version that was asked for."""
    obj = record.obj()
    return from_storage(obj, kind) if converts(kind) else obj


def converts(kind: Kind) -> bool:
    """Whether objects of this kind are stored in another version than they are served in."""
    return (
        kind.version != kind.storage_version or kind.storage_group is not None or kind.one_of_many
    )


def body_of(record: Record, kind: Kind) -> bytes:
    return orjson.dumps(as_served(record, kind)) if converts(kind) else record.body


def answer_record(
    api: Api, request: Request, kind: Kind, record: Record, code: int = 200
) -> Answer:
    form = wanted(request)
    if form is Form.JSON:
        return Answer(code, body_of(record, kind))
    return answer_object(api, request, kind, as_served(record, kind), code)


def answer_object(api: Api, request: Request, kind: Kind, obj: Obj, code: int = 200) -> Answer:
    """For objects that are not (or not yet) in the store: dry runs, subresources, reviews."""
    form = wanted(request)
    if form is Form.TABLE and obj.get("kind") == kind.kind and not kind.virtual:
        version = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return Answer(code, orjson.dumps(tables.table(kind, [obj], version, *shown(api, request))))
    if form is Form.PARTIAL:
        return Answer(code, orjson.dumps(tables.partial_metadata(obj)))
    if form is Form.PARTIAL_LIST:
        raise _wrong_number(kind, "PartialObjectMetadataList", "not a list")
    return _encoded(obj, form, code)


async def answer_one(api: Api, request: Request, kind: Kind, record: Record) -> Answer:
    """answer_record, with other forms of large objects made aside."""
    if wanted(request) is Form.JSON or not is_long(record.body):
        return answer_record(api, request, kind, record)
    user = request.user.name if request.user is not None else ""
    return await api.long_work.done(user, lambda: answer_record(api, request, kind, record))


async def answer_records(
    api: Api, request: Request, kind: Kind, records: Sequence[Record], metadata: Obj
) -> Answer:
    form = wanted(request)
    if form is Form.PARTIAL:
        raise _wrong_number(kind, "PartialObjectMetadata", "a list")
    bodies = await _bodies(records, kind)
    if form is Form.TABLE:
        include, now_s = shown(api, request)
        rows = await _each(tables.row_bytes(kind, tables.in_order(kind, bodies), include, now_s))
        return Answer(200, tables.with_rows(kind, rows, metadata))
    if form is Form.PARTIAL_LIST:
        items = await _each(map(tables.partial_metadata_bytes, bodies))
        return _listed("PartialObjectMetadataList", tables.META_V1, metadata, items)
    if form is Form.YAML:
        user = request.user.name if request.user is not None else ""
        head = {"apiVersion": kind.api_version}, {"kind": f"{kind.kind}List", "metadata": metadata}
        # A job for each portion: the large requests of other users come between them.
        made: list[bytes] = []
        for portion in portions(bodies):
            made += await api.long_work.done(user, partial(yaml_items, portion))
        return Answer(200, yaml_list(*head, made), "application/yaml")
    if kind.custom:
        metadata = {"continue": "", **metadata}
    return _listed(f"{kind.kind}List", kind.api_version, metadata, bodies)


async def _bodies(records: Sequence[Record], kind: Kind) -> list[bytes]:
    if not converts(kind):
        return [record.body for record in records]
    return await _each(body_of(record, kind) for record in records)


async def _each(pieces: Iterable[bytes]) -> list[bytes]:
    """All of them; others go first now and then."""
    turns, made = Turns(), list[bytes]()
    for piece in pieces:
        made.append(piece)
        await turns.next()
    return made


def _listed(kind: str, api_version: str, metadata: Obj, bodies: list[bytes]) -> Answer:
    head = orjson.dumps({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    return Answer(200, [head[:-1], b',"items":[', *_with_commas(bodies), b"]}"])


def _with_commas(bodies: list[bytes]) -> list[bytes]:
    """Neither parsed nor copied: the wire joins as much at a time as it sends."""
    pieces = [b","] * (2 * len(bodies) - 1)
    pieces[::2] = bodies
    return pieces


def shown(api: Api, request: Request) -> tuple[tables.Include, float]:
    """How much of each object goes with its row, and the time that ages are relative to."""
    include = tables.include_object(request.text("includeObject"))
    if isinstance(include, ApiError):
        raise include
    return include, api.clock()


def _encoded(value: Any, form: Form, code: int = 200) -> Answer:
    if form is Form.YAML:
        return Answer(code, yaml_bytes(value), "application/yaml")
    return Answer(code, orjson.dumps(value))
