"""create: from a decoded object to a stored one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.admission.attributes import Attributes, Operation
from localkube.apiserver.api import Api
from localkube.apiserver.cel.expressions import BUDGET
from localkube.apiserver.custom import CRDS, Prepared
from localkube.apiserver.decode.body import JSON, read_object, read_strictly
from localkube.apiserver.decode.weight import is_long
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.defaults.convert import to_storage
from localkube.apiserver.defaults.server_fields import set_fields_on_create
from localkube.apiserver.kinds import Kind
from localkube.apiserver.patch.managed_fields import Writer, track_create
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.schema.check import conform
from localkube.apiserver.schema.strictness import AsWritten
from localkube.apiserver.status import ApiError, FieldError
from localkube.apiserver.store.record import Record
from localkube.apiserver.validation.advice import advice
from localkube.apiserver.validation.validate import validate_create
from localkube.apiserver.verbs.cluster_wide import (
    complete_cluster_wide,
    refuse_escalation,
)
from localkube.apiserver.verbs.metadata import begin, generated_name, place
from localkube.apiserver.verbs.options import WriteOptions, write_options
from localkube.apiserver.verbs.pod_template_cache import Parts, taken_apart
from localkube.apiserver.verbs.representation import (
    answer_object,
    answer_record,
    converts,
)

# As many as kube-apiserver makes for generateName.
_NAME_ATTEMPTS = 8

_T = TypeVar("_T")


class Write(NamedTuple):
    """One write on its way: what it is about and how it was asked for."""

    api: Api
    request: Request
    target: Target
    options: WriteOptions
    applied: bool = False  # server-side apply has seen to managedFields itself
    is_long: bool = False  # see `done`

    async def done(self, step: Callable[[], _T]) -> _T:
        """A step that reads and changes nothing but this write's own objects. What is long is done
        aside, so that other requests go on."""
        if not self.is_long:
            return step()
        user = self.request.user
        return await self.api.long_work.done(user.name if user is not None else "", step)

    def writer(self) -> Writer:
        """Who the fields belong to that this write changes."""
        subresource = self.target.subresource
        time = self.api.stamp() if subresource != "scale" else None
        return Writer(self.options.manager, time, subresource)

    def attributes(self, operation: Operation, obj: Obj | None, old: Obj | None) -> Attributes:
        named = (obj or old or {}).get("metadata", {}).get("name", "")
        return Attributes(
            operation=operation,
            kind=self.target.kind,
            subresource=self.target.subresource,
            namespace=self.target.namespace,
            name=self.target.name or named,
            user=self.request.user,
            obj=obj,
            old=old,
            dry_run=self.options.dry_run,
            options={},
            warnings=self.request.warnings,
            is_long=self.is_long,
        )


def write_of(api: Api, request: Request, target: Target, options: WriteOptions) -> Write:
    long = is_long(request.body, request.headers.get("content-type", ""))
    return Write(api, request, target, options, is_long=long)


class Written(NamedTuple):
    """The object as it is now; the record is None after a dry run, and when it is gone."""

    obj: Obj
    record: Record | None
    is_long: bool = False  # a webhook may have made it so


async def create(api: Api, request: Request, target: Target) -> Answer:
    kind = target.kind
    write = write_of(api, request, target, write_options(request, "CreateOptions"))
    # Asked here, too, and not in `done` alone: nearly always it would be one more coroutine.
    obj, parts = await write.done(lambda: _read(write)) if write.is_long else _read(write)
    written = await create_object(write, obj, parts)
    if written.is_long:
        write = write._replace(is_long=True)
    if request.track_fields:  # from outside: who reads warnings
        obj = written.obj
        request.warnings += (
            await write.done(lambda: advice(obj, kind)) if write.is_long else advice(obj, kind)
        )
    return await answer_written(write, written, 201)


async def answer_written(write: Write, written: Written, code: int = 200) -> Answer:
    api, request, kind = write.api, write.request, write.target.kind
    if written.record is None:
        return await write.done(lambda: answer_object(api, request, kind, written.obj, code))
    record = written.record
    if kind.custom:
        record = await api.conversions.served_one(record, kind)
    if not write.is_long:
        return answer_record(api, request, kind, record, code)
    return await write.done(lambda: answer_record(api, request, kind, record, code))


def _read(write: Write) -> tuple[Obj, Parts | None]:
    pods = write.target.kind.resource == "pods"
    obj, parts = _pod(write) if pods else (conformed_body(write), None)
    place(obj, write.target)
    return obj, parts


def conform_object(write: Write, obj: Obj, written: AsWritten) -> None:
    """Types and unknown fields; what is pruned is warned about."""
    kind, api, strictness = write.target.kind, write.api, write.options.validation
    write.request.warnings += conform(obj, kind, api.schema(kind), strictness, written)
    if kind.custom:
        api.custom.version(kind).apply_defaults(obj)


def conformed_body(write: Write, body: bytes | None = None) -> Obj:
    """The object that was sent (or the one in `body`), checked against its schema."""
    request, kind = write.request, write.target.kind
    media = request.headers.get("content-type", "")
    body = request.body if body is None else body
    if write.options.validation == "Ignore":
        obj = read_object(body, media, kind)
        conform_object(write, obj, AsWritten())
    else:
        obj, written = read_strictly(body, media, kind)
        conform_object(write, obj, written)
    return obj


def _pod(write: Write) -> tuple[Obj, Parts | None]:
    """The pod that was sent, without its spec if the cache of pod specs has it. None if the cache
    cannot be used for this body.
    """
    request = write.request
    in_json = request.headers.get("content-type", JSON) == JSON
    parts = taken_apart(request.body) if in_json else None
    if parts is not None and parts.spec is not None:
        obj = _around_spec(write, parts)
        return (obj, parts) if obj is not None else (conformed_body(write), None)
    obj = conformed_body(write)
    # A spec that causes warnings must cause them for the next pod as well, so it is not cached.
    unchecked = request.warnings or write.options.validation == "Ignore"
    return obj, None if parts is None or unchecked or not parts.explains(obj) else parts


def _around_spec(write: Write, parts: Parts) -> Obj | None:
    """None if a warning or a refusal is due, which takes the whole body."""
    try:
        obj = conformed_body(write, parts.head)
    except ApiError:
        return None
    if parts.fits(obj) and not write.request.warnings:
        # Empty until `parts.settle`: the cached spec has its defaults already.
        return obj | {"spec": {}}
    # The whole body is checked next, and that gives the same warnings again.
    write.request.warnings.clear()
    return None


async def create_object(write: Write, obj: Obj, parts: Parts | None = None) -> Written:
    api, target, kind = write.api, write.target, write.target.kind
    dry_run = write.options.dry_run
    # Before `begin`, which sets generated names, too.
    named = bool(obj["metadata"].get("name"))
    if write.is_long:
        await write.done(lambda: _begun(write, obj, parts))
    else:
        _begun(write, obj, parts)
    attributes = write.attributes(Operation.CREATE, obj, None)
    attributes = await api.admission.mutate(attributes)
    if attributes.is_long:
        write = write._replace(is_long=True)
    await _validate(write, obj)
    await refuse_escalation(api, write.request, obj, None)
    _complete(api, obj, target)
    await api.admission.validate(attributes)
    stored = await stored_form(api, obj, kind) if converts(kind) and not dry_run else obj
    _held = await prepare(write, obj) if write.is_long else None  # until it is stored
    # From here to the store nothing waits: what is checked now still holds then. Webhooks may have
    # taken their time, and an address that was free may have been given to another service.
    if kind.custom:
        api.custom.refuse_create(kind)
    _complete(api, obj, target)
    api.admission.charge(attributes)
    _free_name(api, target, obj, named)
    if dry_run:
        return Written(obj, None, write.is_long)
    stored["metadata"]["name"] = obj["metadata"]["name"]  # another one may have been drawn
    record = api.store.create(kind.resource, stored)
    await api.store.durable(record)
    return Written(obj, record, write.is_long)


def _begun(write: Write, obj: Obj, parts: Parts | None) -> None:
    kind = write.target.kind
    begin(obj, kind, write.api.stamp())
    apply_defaults(obj, kind)
    if parts is not None:
        parts.settle(obj)
    # What admission and the server add from here on belongs to no writer.
    if write.request.track_fields and not write.applied:
        track_create(obj, write.writer(), kind, write.api.schema(kind))


async def prepare(write: Write, obj: Obj) -> Prepared | None:
    """What follows at once from storing a large object, as far as it can be done before."""
    if write.options.dry_run or write.target.kind.resource != CRDS:
        return None
    return await write.done(lambda: write.api.custom.prepare(obj))


async def stored_form(api: Api, obj: Obj, kind: Kind) -> Obj:
    """The object in the version that its kind is stored in."""
    if kind.custom:
        return await api.conversions.stored(obj, kind) if converts(kind) else obj
    return to_storage(obj, kind) if converts(kind) else obj


def invalid_object(kind: Kind, name: str, errors: Sequence[FieldError]) -> ApiError:
    """Named by the kind that the object is stored as: events of events.k8s.io are core events."""
    group = kind.group if kind.storage_group is None else kind.storage_group
    return status.invalid(kind.kind, group, name, errors)


async def custom_errors(
    write: Write, new: Obj, old: Obj | None, known: list[FieldError]
) -> list[FieldError]:
    """`known`, and what the CRD minds. Its rules may take long, so that this may wait."""
    version = write.api.custom.version(write.target.kind)

    def question(budget: int) -> list[FieldError]:
        return version.validate(new, old, known, budget)

    if write.is_long:
        return await write.done(lambda: question(BUDGET))
    return await write.api.admission.judges.answer(question, BUDGET)


async def _validate(write: Write, obj: Obj) -> None:
    kind = write.target.kind

    def validated() -> list[FieldError]:
        set_fields_on_create(obj, kind, write.request.user)
        return validate_create(obj, kind)

    errors = await write.done(validated) if write.is_long else validated()
    if kind.custom:
        errors = await custom_errors(write, obj, None, errors)
    if errors:
        raise invalid_object(kind, obj["metadata"].get("name", ""), errors)


def _complete(api: Api, obj: Obj, target: Target) -> None:
    kind = target.kind
    errors = complete_cluster_wide(api, obj, None, kind.resource)
    if errors:
        raise invalid_object(kind, obj["metadata"]["name"], errors)


def _free_name(api: Api, target: Target, obj: Obj, named: bool) -> None:
    """Refuses a given name that is taken, and draws another name if a generated one is taken."""
    metadata = obj["metadata"]
    prefix = metadata.get("generateName")
    for _ in range(_NAME_ATTEMPTS):
        taken = api.store.get(target.kind.resource, target.namespace, metadata["name"])
        if taken is None:
            return
        if named or not prefix:
            break
        metadata["name"] = generated_name(prefix)
    raise _taken(taken, target.kind, metadata["name"])


def _taken(record: Record | None, kind: Kind, name: str) -> ApiError:
    error = status.already_exists(kind, name)
    if record is not None and "deletionTimestamp" in record.obj()["metadata"]:
        error.status["message"] = f"object is being deleted: {error.status['message']}"
    return error
