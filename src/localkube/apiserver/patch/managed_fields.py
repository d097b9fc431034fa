"""Who owns which field: metadata.managedFields.

The rules, which are those of Kubernetes:
- An Update owns what it changes, and takes it from everybody else. Fields that it removes are
  nobody's. An Update that changes nothing leaves no trace.
- One entry per manager, operation, subresource and (for Updates) version.
- Objects without managedFields stay so under Updates: tracking starts at creation or at the first
  apply. A client switches it off by sending `managedFields: []` or `[{}]`.
- managedFields that a client sends replace those of the object, if they are well formed.
- Ten Update entries at most: the oldest are put together as "ancient-changes".

Call these after decoding, patching and defaulting, and before admission and before the server sets
fields of its own (status, generation, clusterIP): what the server adds belongs to nobody. They
set metadata.managedFields of the new object in place; its metadata must be its own, not shared.

    POST      track_create(obj, writer, kind, schema)
    PUT, PATCH (json, merge, strategic)
              track_update(live, new, writer, kind, schema)
    .../status, .../scale and other subresources: the same with Writer(..., subresource="status")
    apply     server_side_apply.apply, which does all of it
    at the very end, before comparing with the stored object
              server_side_apply.settle_times(live, new)
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch import field_set
from localkube.apiserver.patch.blank import blank
from localkube.apiserver.patch.field_compare import compared, set_in
from localkube.apiserver.patch.field_set import BadFields, FieldSet
from localkube.apiserver.patch.shape import root_of
from localkube.apiserver.schema.node import Schema

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_MAX_MANAGER_BYTES = 128
_MAX_UPDATE_ENTRIES = 10
_ANCIENT = "ancient-changes"

Entry = dict[str, Any]
Identity = tuple[str, str, str, str]


class Writer(NamedTuple):
    """Who writes, when (RFC 3339, UTC, seconds; None: not to be noted), and through which
    subresource."""

    manager: str
    time: str | None
    subresource: str = ""


@lru_cache(maxsize=1024)
def manager_name(field_manager: str, user_agent: str) -> str:
    """Of an Update: what the query says, else the program's name in the User-Agent."""
    if field_manager:
        return field_manager
    name = "".join(c for c in user_agent.partition("/")[0] if c.isprintable())
    while len(name.encode()) > _MAX_MANAGER_BYTES:
        name = name[: min(len(name) - 1, _MAX_MANAGER_BYTES)]
    return name or "unknown"


def track_create(obj: Obj, writer: Writer, kind: Kind, schema: Schema) -> None:
    sent = obj["metadata"].get("managedFields")
    entries = _sent(sent, []) if sent else ()
    before = blank(kind.api_version, kind.kind)
    if entries:
        _track(obj, entries, before, (writer, kind, schema))
        return
    fields = set_in(root_of(schema, kind, writer.subresource), before, obj)
    put(obj, [entry_of(writer, UPDATE, kind.api_version, fields, writer.time)] if fields else ())


def track_update(old: Obj, new: Obj, writer: Writer, kind: Kind, schema: Schema) -> None:
    live: list[Entry] = old["metadata"].get("managedFields") or []
    sent = new["metadata"].get("managedFields")
    # Through a subresource, managedFields cannot be set.
    entries = live if writer.subresource or sent is live else _sent(sent, live)
    if entries:
        _track(new, entries, old, (writer, kind, schema))
    else:
        new["metadata"].pop("managedFields", None)


def _track(new: Obj, entries: Sequence[Entry], old: Obj, how: tuple[Writer, Kind, Schema]) -> None:
    writer, kind, schema = how
    shape = root_of(schema, kind, writer.subresource)
    changed, gone = compared(shape, old, new)
    if entries and (changed or gone):
        entries = handed_over(entries, changed or {}, gone or {})
    if changed:
        entries = _with_update(entries, changed, writer, kind.api_version)
    put(new, entries)


def put(obj: Obj, entries: Sequence[Entry]) -> None:
    kept = [entry for entry in entries if entry["fieldsV1"]]
    if kept:
        obj["metadata"]["managedFields"] = sorted(kept, key=_place) if len(kept) > 1 else kept
    else:
        obj["metadata"].pop("managedFields", None)


def _place(entry: Entry) -> tuple[str, ...]:
    get = entry.get
    return (
        entry["operation"],
        get("time", ""),
        get("manager", ""),
        entry["apiVersion"],
        get("subresource", ""),
    )


def identity(entry: Entry) -> Identity:
    """Who applies, applies in any version: an applier has one entry."""
    version = entry["apiVersion"] if entry["operation"] == UPDATE else ""
    return entry.get("manager", ""), entry["operation"], version, entry.get("subresource", "")


def entry_of(
    writer: Writer, operation: str, api_version: str, fields: FieldSet, time: str | None
) -> Entry:
    entry: Entry = {"manager": writer.manager, "operation": operation, "apiVersion": api_version}
    if time is not None:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if writer.subresource:
        entry["subresource"] = writer.subresource
    return entry


def handed_over(entries: Sequence[Entry], changed: FieldSet, gone: FieldSet) -> list[Entry]:
    """What everybody still owns after somebody changed and removed fields.

    A changed field leaves all its former owners, because none of them has set its new value: only
    so does their next apply find a conflict instead of overwriting the change in silence.
    """
    left = []
    for entry in entries:
        fields = entry["fieldsV1"]
        rest = field_set.difference(field_set.difference(fields, changed), gone)
        if rest:
            left.append(entry if rest == fields else {**entry, "fieldsV1": rest})
    return left


def _with_update(
    entries: Sequence[Entry], changed: FieldSet, writer: Writer, api_version: str
) -> list[Entry]:
    mine = entry_of(writer, UPDATE, api_version, changed, writer.time)
    if not entries:
        return [mine]
    me = identity(mine)
    others = []
    for entry in entries:
        if identity(entry) == me:
            mine["fieldsV1"] = field_set.union(entry["fieldsV1"], changed)
        else:
            others.append(entry)
    return _capped([*others, mine])


def _capped(entries: list[Entry]) -> list[Entry]:
    updates = [entry for entry in entries if entry["operation"] == UPDATE]
    surplus = len(updates) - _MAX_UPDATE_ENTRIES
    if surplus <= 0:
        return entries
    kept = {identity(entry): entry for entry in entries}
    first: dict[str, Identity] = {}  # the oldest entry of each version
    for entry in sorted(updates, key=_age):
        if surplus <= 0:
            break
        version = entry["apiVersion"]
        if version not in first:
            first[version] = identity(entry)
            continue
        bucket = (_ANCIENT, UPDATE, version, "")
        if bucket not in kept:
            kept[bucket] = kept.pop(first[version])
        fields = field_set.union(entry["fieldsV1"], kept[bucket]["fieldsV1"])
        writer = Writer(_ANCIENT, "")
        kept.pop(identity(entry), None)
        kept[bucket] = entry_of(writer, UPDATE, version, fields, entry.get("time"))
        surplus -= 1
    return list(kept.values())


def _age(entry: Entry) -> tuple[str, Identity]:
    return entry.get("time", ""), identity(entry)


def _sent(sent: Any, live: list[Entry]) -> list[Entry]:
    """What holds after a client sent `sent` for an object that has `live`."""
    if sent is None or sent == live:
        return live
    if sent in ([], [{}]):
        return []
    try:
        # kube-apiserver, too, ignores managedFields that it cannot read; it does not refuse the
        # object.
        return decoded(sent) or live
    except BadFields:
        return live


def decoded(sent: Any) -> list[Entry]:
    """Checked and in normal form. The last of two entries for the same manager wins."""
    if not isinstance(sent, list):
        raise BadFields("wanted a list")
    entries = {}
    for row in sent:
        if not isinstance(row, dict) or row.get("operation") not in (APPLY, UPDATE):
            raise BadFields("operation must be `Apply` or `Update`")
        if not row.get("apiVersion"):
            raise BadFields("apiVersion must not be empty")
        if row.get("fieldsType") != "FieldsV1":
            raise BadFields("fieldsType must be FieldsV1")
        entry = {**row, "fieldsV1": field_set.from_json(row.get("fieldsV1"))}
        entries[identity(entry)] = entry
    return list(entries.values())
