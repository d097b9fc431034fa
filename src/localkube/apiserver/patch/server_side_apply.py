"""Server-side apply: an applier owns exactly what it applied last.

    live + configuration  ->  merged  ->  minus what only this applier owned and no longer applies
                          ->  compared with live: what others own and would change is a conflict

How the API server calls it; default, admit, ... stand for the caller's own steps:

    new = apply(live, config, Writer("kubectl", now), kind, schema, force=False)  # live or None
    default(new)             # ownership is settled already: defaults belong to nobody
    admit(new), reset status (through /status: all but status), set generation, validate ...
    settle_times(live, new)  # an apply without effect is now equal to `live`
    if new != live: store(new)

`config` is the decoded body; through /status, say Writer("kubectl", now, subresource="status").
The result shares parts with `live` and `config`, but its top level and metadata are its own. Nulls
in it (applied as such, or left where everything was pruned) mean absent.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch import apply_check, last_applied
from localkube.apiserver.patch.apply_merge import merged, pruned
from localkube.apiserver.patch.blank import blank
from localkube.apiserver.patch.body import refuse_too_deep
from localkube.apiserver.patch.conflicts import Conflict, apply_conflict
from localkube.apiserver.patch.field_compare import compared
from localkube.apiserver.patch.field_set import (
    LEAF,
    FieldSet,
    difference,
    intersection,
    union,
)
from localkube.apiserver.patch.field_walk import declared
from localkube.apiserver.patch.managed_fields import (
    APPLY,
    UPDATE,
    Entry,
    Writer,
    entry_of,
    handed_over,
    identity,
    put,
)
from localkube.apiserver.patch.shape import Shape, root_of, shape_of
from localkube.apiserver.schema.node import Schema
from localkube.apiserver.status import bad_request, failure

_BEFORE: Final = "before-first-apply"
# Whatever the applier lets go of, the object keeps its name.
_NAMED: Final[FieldSet] = {"f:metadata": {"f:name": LEAF}}


@refuse_too_deep
def apply(
    live: Obj | None, config: Obj, writer: Writer, kind: Kind, schema: Schema, *, force: bool
) -> Obj:
    """The object after the apply, with its managedFields. Raises ApiError, 409 on conflicts."""
    _check(config, kind, schema)
    shape = root_of(schema, kind, writer.subresource)
    before: Obj = live if live is not None else {"metadata": {}}
    claim = _claim(shape, config)
    mine, others = _entries(before, writer, kind, shape)
    new = _laid_over(schema, before, config, (claim, mine, others))
    # Conflicts are about values, not about claims: applying the value that a field already has
    # changes nothing, so that two appliers can own the same field together.
    changed, gone = compared(shape, before, new)
    conflicts = _conflicts(others, changed or {})
    if conflicts and not force:
        if writer.manager == last_applied.KUBECTL:
            # Who used client-side apply before owns the same fields under another manager's name.
            # The change to server-side apply must not be a conflict with one's own past.
            conflicts = _excused(conflicts, last_applied.still_as_applied(shape, before, kind))
        if conflicts:
            raise apply_conflict(conflicts)
    # An apply that changes nothing leaves the time alone, even where it takes a share of a field.
    time = writer.time if new != before else (mine or {}).get("time")
    new["metadata"] = dict(new.get("metadata") or {})
    put(
        new,
        [
            *handed_over(others, changed or {}, gone or {}),
            entry_of(writer, APPLY, kind.api_version, claim, time),
        ],
    )
    if writer.manager == last_applied.KUBECTL:
        last_applied.refresh(new, config)
    return new


def _check(config: Obj, kind: Kind, schema: Schema) -> None:
    metadata = config.get("metadata")
    named: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    group, _, version = str(config.get("apiVersion", "")).rpartition("/")
    shown = f"{group}/{version}, Kind={config.get('kind', '')}"
    if (group, version, config.get("kind")) != (kind.group, kind.version, kind.kind):
        raise bad_request(f"invalid object type: {shown}")
    if named.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    wrong = apply_check.problems(schema, config)
    if wrong:
        where = f"{named.get('namespace', '')}/{named.get('name', '')}; {shown}"
        raise failure(500, "", f"failed to create typed patch object ({where}): {wrong}")


def _claim(shape: Shape, config: Obj) -> FieldSet:
    claim = declared(shape, config) or {}
    if claim.get("f:metadata") == LEAF:  # nothing in it that one can own
        claim = {element: below for element, below in claim.items() if element != "f:metadata"}
    return claim


def _entries(
    before: Obj, writer: Writer, kind: Kind, shape: Shape
) -> tuple[Entry | None, list[Entry]]:
    """This applier's entry, and those of all others."""
    entries: Sequence[Entry] = before["metadata"].get("managedFields") or ()
    if not entries:
        # The object was never tracked. All that is there is given to one made-up manager; without
        # it, the first apply could overwrite every field without a conflict.
        everything, _ = compared(shape, blank(kind.api_version, kind.kind), before)
        past = Writer(_BEFORE, writer.time, writer.subresource)
        if everything:
            entries = [entry_of(past, UPDATE, kind.api_version, everything, writer.time)]
    # Without a version: an applier has one entry over all versions (see `identity`).
    me = (writer.manager, APPLY, "", writer.subresource)
    mine = next((entry for entry in entries if identity(entry) == me), None)
    return mine, [entry for entry in entries if entry is not mine]


def _laid_over(
    schema: Schema,
    before: Obj,
    config: Obj,
    owners: tuple[FieldSet, Entry | None, Sequence[Entry]],
) -> Obj:
    claim, mine, others = owners
    whole = shape_of(schema)
    new: Obj = merged(whole, before, config)
    if mine is not None:
        # A field that this applier applied last time and left out now is removed, unless somebody
        # else owns it as well: giving up a share of a field must not take it from the others. An
        # applier without an entry has nothing to give up, so that a first apply removes nothing.
        kept = reduce(union, (entry["fieldsV1"] for entry in others), union(claim, _NAMED))
        new = pruned(whole, new, mine["fieldsV1"], kept)
    return new


def _conflicts(others: Sequence[Entry], changed: FieldSet) -> list[Conflict]:
    found = [Conflict(entry, intersection(entry["fieldsV1"], changed)) for entry in others]
    return [conflict for conflict in found if conflict.fields]


def _excused(conflicts: Sequence[Conflict], allowed: FieldSet) -> list[Conflict]:
    left = [Conflict(c.owner, difference(c.fields, allowed)) for c in conflicts]
    return [conflict for conflict in left if conflict.fields]


def settle_times(live: Obj, new: Obj) -> None:
    """Where nothing but times of managedFields differs, the old times stay: a no-op is a no-op."""
    before = live["metadata"].get("managedFields")
    after = new["metadata"].get("managedFields")
    if not before or not after or before == after or len(before) != len(after):
        return
    if any(_timeless(b) != _timeless(a) for b, a in zip(before, after, strict=True)):
        return
    metadata = {**new["metadata"], "managedFields": before}
    if {**new, "metadata": metadata} == live:
        new["metadata"] = metadata


def _timeless(entry: Entry) -> Entry:
    return {key: value for key, value in entry.items() if key != "time"}
