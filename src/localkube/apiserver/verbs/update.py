"""update: changes a stored object by a function from its old to its new state, with all checks.

PUT, the four patches, /status, /scale and the rest differ only in that function.
"""

from collections.abc import Callable
from functools import partial

import orjson

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.admission.attributes import Attributes, Operation
from localkube.apiserver.api import Api
from localkube.apiserver.decode.weight import is_long
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.certificate_fields import date_conditions
from localkube.apiserver.defaults.server_fields import (
    set_fields_on_status_update,
    set_fields_on_update,
)
from localkube.apiserver.kinds import Kind
from localkube.apiserver.large_writes import LARGE_BYTES
from localkube.apiserver.patch.managed_fields import track_update
from localkube.apiserver.patch.server_side_apply import settle_times
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.status import MODIFIED, FieldError
from localkube.apiserver.store.record import Record
from localkube.apiserver.validation.validate import (
    validate_status_update,
    validate_update,
)
from localkube.apiserver.verbs.cluster_wide import (
    complete_cluster_wide,
    refuse_escalation,
    refuse_signers,
)
from localkube.apiserver.verbs.create import (
    Write,
    Written,
    answer_written,
    conformed_body,
    custom_errors,
    invalid_object,
    prepare,
    stored_form,
    write_of,
)
from localkube.apiserver.verbs.metadata import (
    carry_over,
    count_generation,
    failed_precondition,
)
from localkube.apiserver.verbs.options import write_options
from localkube.apiserver.verbs.read import existing
from localkube.apiserver.verbs.representation import as_served

# From a private copy of the old object to the new one; may raise ApiError.
Change = Callable[[Obj], Obj]

_ATTEMPTS = 5  # when admission webhooks wait, somebody else may write meanwhile


async def update(api: Api, request: Request, target: Target) -> Answer:
    """PUT: the body replaces the object."""
    write = write_of(api, request, target, write_options(request, "UpdateOptions"))
    obj = await write.done(lambda: conformed_body(write))
    sent = obj.get("metadata", {})
    # Kubernetes allows a PUT without a version for most built-in kinds, never for custom ones.
    if target.kind.custom and not sent.get("resourceVersion"):
        text = "must be specified for an update"
        problem = status.invalid_value("metadata.resourceVersion", 0, text)
        raise status.invalid(target.kind.plural, target.kind.group, target.name, [problem])
    replacement, uid = await write.done(lambda: whole_body(obj)), sent.get("uid")

    def change(old: Obj) -> Obj:
        if uid and uid != old["metadata"]["uid"]:
            raise failed_precondition(target.kind, old["metadata"], "UID", uid)
        return replacement(old)

    written = await update_object(write, change, locked=bool(sent.get("resourceVersion")))
    return await answer_written(write, written)


def whole_body(obj: Obj) -> Change:
    """A PUT: what was sent replaces the object. A copy each time, as the write may be retried."""
    raw = orjson.dumps(obj)
    return lambda _: orjson.loads(raw)


async def update_object(write: Write, change: Change, *, locked: bool = False) -> Written:
    """`locked`: the client named the version it changes, so a newer one is a conflict."""
    api, target, request = write.api, write.target, write.request
    # A large body has its turn already (app.py). A small one may change a large object.
    if len(request.body) > LARGE_BYTES or len(existing(api, target).body) <= LARGE_BYTES:
        return await _update_object(write, change, locked=locked)
    async with api.large_writes.turn(request.user.name if request.user is not None else ""):
        return await _update_object(write, change, locked=locked)


async def _update_object(write: Write, change: Change, *, locked: bool) -> Written:
    api, target = write.api, write.target
    for _ in range(_ATTEMPTS):
        record = existing(api, target)
        if is_long(record.body):
            write = write._replace(is_long=True)
        served = await api.conversions.served_one(record, target.kind)
        old, changed = await write.done(partial(_old_and_changed, served, target.kind, change))
        new, attributes = await _completed_and_checked(write, changed, old)
        if attributes.is_long:
            write = write._replace(is_long=True)
        stored = await _stored(write, record, new, old)
        _held = await prepare(write, new) if write.is_long else None  # until it is stored
        # Admission and webhooks may have waited. Records are immutable, so that the same record
        # means that nobody has written meanwhile; from here to the store nothing awaits.
        if api.store.get(record.resource, record.namespace, record.name) is record:
            # Again: an address that was free may have been given to another service.
            if target.subresource != "status":
                errors = complete_cluster_wide(api, new, old, target.kind.resource)
                if errors:
                    raise invalid_object(target.kind, target.name, errors)
            api.admission.charge(attributes)
            return await _write(write, record, new, stored)
        if locked:
            break
    raise status.conflict(target.kind, target.name, MODIFIED)


def _old_and_changed(served: Record, kind: Kind, change: Change) -> tuple[Obj, Obj]:
    # A copy of its own: the change may modify its argument, and `old` is compared with the
    # result.
    return as_served(served, kind), change(as_served(served, kind))


async def _completed_and_checked(write: Write, new: Obj, old: Obj) -> tuple[Obj, Attributes]:
    api, target, kind = write.api, write.target, write.target.kind
    await write.done(lambda: _completed(write, new, old))
    attributes = write.attributes(Operation.UPDATE, new, old)
    attributes = await api.admission.mutate(attributes)
    if attributes.is_long:
        write = write._replace(is_long=True)
    errors = await _errors(write, new, old)
    if errors:
        raise invalid_object(kind, target.name, errors)
    await refuse_escalation(api, write.request, new, old)
    refuse_signers(api, write.request, new, old)
    if write.request.track_fields:
        await write.done(lambda: settle_times(old, new))
    await api.admission.validate(attributes)
    return new, attributes


def _completed(write: Write, new: Obj, old: Obj) -> None:
    api, target, kind = write.api, write.target, write.target.kind
    carry_over(new, old, kind, target.subresource)
    # carry_over has compared the version that the client sent. Equal versions from here on let
    # `_write` recognise a write without effect.
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    apply_defaults(new, kind)
    if kind.custom:
        api.custom.version(kind).apply_defaults(new)
    _track_fields(write, new, old)


def _track_fields(write: Write, new: Obj, old: Obj) -> None:
    """What admission and the server add afterwards belongs to no writer."""
    kind = write.target.kind
    if write.applied:
        return
    if write.request.track_fields:
        track_update(old, new, write.writer(), kind, write.api.schema(kind))
    else:
        _keep_managed_fields(new, old)


def _keep_managed_fields(new: Obj, old: Obj) -> None:
    """Writers inside the process own nothing, and take nothing away (docs/decisions/0005)."""
    if "managedFields" in old["metadata"]:
        new["metadata"]["managedFields"] = old["metadata"]["managedFields"]
    else:
        new["metadata"].pop("managedFields", None)


async def _errors(write: Write, new: Obj, old: Obj) -> list[FieldError]:
    api, target, kind = write.api, write.target, write.target.kind
    stamp = api.stamp()
    errors = await write.done(lambda: _own_errors(target, new, old, stamp))
    if target.subresource != "status":
        errors = errors or complete_cluster_wide(api, new, old, kind.resource)
    if kind.custom:
        errors = await custom_errors(write, new, old, errors)
    return errors


def _own_errors(target: Target, new: Obj, old: Obj, stamp: str) -> list[FieldError]:
    """Of the object alone; sets what only the server may set before."""
    kind, subresource = target.kind, target.subresource
    if subresource == "status":
        set_fields_on_status_update(new, old, kind, stamp)
        return validate_status_update(new, old, kind)
    if subresource == "approval":
        date_conditions(new, old, stamp)
        return validate_update(new, old, kind, subresource)
    if subresource != "finalize":  # the one door to a namespace's finalizers
        set_fields_on_update(new, old, kind)
    count_generation(new, old, kind)
    return validate_update(new, old, kind, subresource)


async def _stored(write: Write, record: Record, new: Obj, old: Obj) -> Obj | None:
    """The object as it is to be stored; None if nothing has to be written."""
    kind = write.target.kind
    if write.options.dry_run:
        return None
    same = await write.done(lambda: new == old)
    if same and not (kind.one_of_many and _lies_in_another_version(record, kind)):
        return None
    return await stored_form(write.api, new, kind)


def _lies_in_another_version(record: Record, kind: Kind) -> bool:
    """Then a write without effect moves it: storage migration is done by such writes."""
    return bool(record.obj()["apiVersion"] != f"{kind.group}/{kind.storage_version}")


async def _write(write: Write, record: Record, new: Obj, stored: Obj | None) -> Written:
    """Nothing awaits between the caller's check of the record and the write to the store."""
    if write.options.dry_run:
        return Written(new, None)
    store = write.api.store
    if stored is None:
        await store.durable(record)  # somebody else's write, maybe, and not on disk yet
        return Written(new, record)
    if _finished(new):
        # Watchers hear of the end of what they knew; what was changed with it nobody ever had.
        gone = store.remove(record)
        new["metadata"]["resourceVersion"] = str(gone.rv)
        await store.durable(gone)
        return Written(new, None)
    written = store.replace(record, stored)
    new["metadata"]["resourceVersion"] = str(written.rv)
    await store.durable(written)
    return Written(new, written)


def _finished(obj: Obj) -> bool:
    """Deletion was asked for and nothing holds the object any more."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if obj["kind"] == "Namespace" and obj["apiVersion"] == "v1":
        return not obj.get("spec", {}).get("finalizers")
    # A pod goes when its kubelet says so: by a delete without grace.
    return not metadata.get("deletionGracePeriodSeconds")
