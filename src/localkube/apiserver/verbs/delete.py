"""delete and deletecollection: removes an object at once, or marks it with a deletionTimestamp
while finalizers, a grace period or a namespace's content hold it.
"""

import datetime
from functools import partial

from kubeclient.objects import Obj
from kubeclient.turns import Turns
from localkube.apiserver import status
from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.api import Api
from localkube.apiserver.decode.weight import is_long
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.store.record import Record
from localkube.apiserver.verbs.create import Write
from localkube.apiserver.verbs.options import (
    DeleteOptions,
    ListOptions,
    WriteOptions,
    delete_options,
)
from localkube.apiserver.verbs.read import existing
from localkube.apiserver.verbs.representation import (
    answer_object,
    answer_records,
    as_served,
)
from localkube.apiserver.verbs.selection import matching, select, selection
from localkube.apiserver.verbs.typed_body import typed_body

_POLICY_FINALIZERS = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}
# A finished delete of these answers with the object; of all others, with a Status.
_ANSWERED_WITH_OBJECT = frozenset(
    {
        "pods",
        "services",
        "serviceaccounts",
        "persistentvolumes",
        "persistentvolumeclaims",
        "podtemplates",
        "resourcequotas",
    }
)
_DEFAULT_GRACE_S = 30
_END_OF_TIME_S = 253_402_300_799  # the last second that has four digits for its year
# What these hold goes before they do; they are only marked.
_EMPTIED_FIRST = frozenset({"namespaces", "customresourcedefinitions.apiextensions.k8s.io"})
# Kinds older than the garbage collector, whose pods stay unless somebody says otherwise.
_ORPHANING = frozenset({"jobs.batch", "replicationcontrollers"})
_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)


async def delete(api: Api, request: Request, target: Target) -> Answer:
    options = delete_options(request, await _options_body(api, request))
    if not options.policy and target.kind.resource in _ORPHANING:
        options = options._replace(policy="Orphan")
        if target.kind.resource == "jobs.batch":
            request.warnings.append(_PODS_STAY)
    record = existing(api, target)
    gone, last = await delete_record(api, request, target, record, options)
    kind = target.kind
    if gone and kind.resource not in _ANSWERED_WITH_OBJECT:
        return answer_object(api, request, kind, _success(kind, record))
    last = await api.conversions.served_one(last, kind)
    return answer_object(api, request, kind, as_served(last, kind))


async def delete_collection(
    api: Api, request: Request, target: Target, options: ListOptions
) -> Answer:
    deletion = delete_options(request, await _options_body(api, request))
    matches = selection(api, target, options)
    chosen = await matching(select(api.store, target, options), matches)
    turns = Turns()
    for record in chosen:
        await turns.next()
        one = target._replace(namespace=record.namespace, name=record.name)
        # Each deletion awaits webhooks and the disk: by now the object may be gone, or a new one
        # may have its name.
        if _current(api, record) is not None:
            await delete_record(api, request, one, record, deletion, only_this=True)
    metadata: Obj = {"resourceVersion": str(api.store.published_rv)}
    shown = await api.conversions.served(chosen, target.kind)
    return await answer_records(api, request, target.kind, shown, metadata)


async def _options_body(api: Api, request: Request) -> Obj:
    if not request.body:
        return {}
    return await typed_body(api, request, "", "v1", "DeleteOptions")


def _success(kind: Kind, record: Record) -> Obj:
    details: Obj = {"name": record.name}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.plural, "uid": record.uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _current(api: Api, record: Record) -> Record | None:
    """The object as it is now; None if it is gone, even if another one has its name."""
    found = api.store.get(record.resource, record.namespace, record.name)
    return found if found is not None and found.uid == record.uid else None


async def delete_record(
    api: Api,
    request: Request,
    target: Target,
    record: Record,
    options: DeleteOptions,
    *,
    only_this: bool = False,
) -> tuple[bool, Record]:
    """Whether it is gone, and its last state. `only_this`: not a later object of the name."""
    write = Write(api, request, target, WriteOptions(options.dry_run, "", False, "Warn", None))
    write = write._replace(is_long=is_long(record.body))
    while True:
        served = await api.conversions.served_one(record, target.kind)
        old = await write.done(partial(as_served, served, target.kind))
        obj = await write.done(record.obj)
        attributes = write.attributes(Operation.DELETE, None, old)
        await api.admission.mutate(attributes)
        await api.admission.validate(attributes)
        # A webhook may have taken its time: what is deleted is what is there now, and admission has
        # to have seen it.
        found = _current(api, record)
        if found is not None:
            obj = obj if found is record else found.obj()
            record = found
            break
        if only_this:
            return True, record
        record = existing(api, target)
    check_preconditions(target.kind, record, options)
    holds = _mark(obj, target.kind, options, api)
    if options.dry_run:
        return not holds, record
    if not holds:
        last = api.store.remove(record, obj)
    elif obj == record.obj():
        last = record  # already on its way, and nothing new was asked
    else:
        last = api.store.replace(record, obj)
    await api.store.durable(last)
    return not holds, last


def check_preconditions(kind: Kind, record: Record, options: DeleteOptions) -> None:
    """In the store's words, which name the kind rather than the resource."""
    details: Obj = {"name": record.name, "kind": kind.kind}
    if kind.group:
        details["group"] = kind.group
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    if options.uid and options.uid != record.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({record.uid}). The object might have been deleted and then recreated"
        )
    elif options.resource_version and options.resource_version != str(record.rv):
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({record.rv}). The object might have been modified"
        )
    else:
        return
    message = f'Operation cannot be fulfilled on {qualified} "{record.name}": {why}'
    raise status.failure(409, "Conflict", message, details=details)


def _mark(obj: Obj, kind: Kind, options: DeleteOptions, api: Api) -> bool:
    """Writes the deletion into the object; says whether something still holds it."""
    metadata = obj["metadata"]
    _set_policy_finalizer(metadata, options.policy)
    grace_s = _grace_s(obj, kind, options)
    marked = "deletionTimestamp" in metadata
    held = bool(metadata.get("finalizers")) or grace_s > 0 or _has_content(obj, kind)
    graceful = kind.kind == "Pod" and not kind.group
    # A pod that goes at once still gets its deletionTimestamp, which its DELETED event shows.
    if not held and not graceful:
        return False
    if not marked and kind.resource in _EMPTIED_FIRST:
        metadata["deletionTimestamp"] = api.stamp()
    elif not marked or grace_s < metadata.get("deletionGracePeriodSeconds", 0):
        # deletionTimestamp is when the grace period ends, not when the deletion was requested.
        end_s = min(int(api.clock()) + grace_s, _END_OF_TIME_S)
        end = datetime.datetime.fromtimestamp(end_s, datetime.UTC)
        metadata["deletionTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["deletionGracePeriodSeconds"] = grace_s
        # kube-apiserver counts the first request for deletion as a change of the desired state.
        if not marked and metadata.get("generation"):
            metadata["generation"] += 1
    if _has_content(obj, kind):
        obj.setdefault("status", {})["phase"] = "Terminating"
    return held


def _set_policy_finalizer(metadata: Obj, policy: str) -> None:
    if not policy:
        return
    wanted = _POLICY_FINALIZERS.get(policy)
    kept = [f for f in metadata.get("finalizers") or () if f not in _POLICY_FINALIZERS.values()]
    if wanted:
        kept.append(wanted)
    if kept:
        metadata["finalizers"] = kept
    else:
        metadata.pop("finalizers", None)


def _has_content(obj: Obj, kind: Kind) -> bool:
    """A namespace goes when its own finalizers, kept by the namespace controller, are gone."""
    if kind.kind != "Namespace" or kind.group:
        return False
    return bool(_part(obj, "spec").get("finalizers"))


def _part(obj: Obj, name: str) -> Obj:
    """Empty if it is nothing of the sort: whatever an object is, it can be deleted."""
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def _grace_s(obj: Obj, kind: Kind, options: DeleteOptions) -> int:
    if kind.kind != "Pod" or kind.group:
        return 0
    spec, metadata = _part(obj, "spec"), obj["metadata"]
    # No kubelet would confirm the end: there is none, or it has nothing to stop any more.
    if not spec.get("nodeName") or _part(obj, "status").get("phase") in ("Succeeded", "Failed"):
        return 0
    if options.grace_s is not None:
        asked: int = options.grace_s
    else:
        asked = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S)
    # A pod that is being deleted can only be deleted sooner, never later.
    already: int = metadata.get("deletionGracePeriodSeconds", asked)
    return min(asked, already)
