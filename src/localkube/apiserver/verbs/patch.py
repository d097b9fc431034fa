"""patch: JSON patch, merge patch, strategic merge patch and server-side apply."""

from dataclasses import replace

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.decode.body import read_yaml, repeated_in
from localkube.apiserver.patch import server_side_apply
from localkube.apiserver.patch.json_patch import apply_json_patch
from localkube.apiserver.patch.merge_patch import apply_merge_patch
from localkube.apiserver.patch.strategic_merge import apply_strategic
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.schema.check import examine
from localkube.apiserver.schema.strictness import AsWritten
from localkube.apiserver.status import ApiError, FieldError
from localkube.apiserver.verbs.create import (
    Write,
    answer_written,
    conform_object,
    create_object,
    write_of,
)
from localkube.apiserver.verbs.metadata import place
from localkube.apiserver.verbs.options import write_options
from localkube.apiserver.verbs.read import existing
from localkube.apiserver.verbs.update import Change, update_object

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def patch(api: Api, request: Request, target: Target) -> Answer:
    media = request.headers.get("content-type", "").split(";", 1)[0].strip()
    options = write_options(request, "PatchOptions")
    write = write_of(api, request, target, options)
    if media == APPLY_PATCH:
        return await _apply(write._replace(applied=True))
    if options.force is not None:
        text = "may not be specified for non-apply patch"
        raise _bad_options(status.forbidden_field("force", text))
    change = change_of(api, request, target, media)
    existing(api, target)

    prefix = "json patch " if media == JSON_PATCH else ""
    written = await write.done(lambda: _as_written(write, prefix))

    def conformed(old: Obj) -> Obj:
        return _conform_patched(write, change(old), old, written)

    # No lock: a version named in the patch is compared by carry_over, in each attempt.
    return await answer_written(write, await update_object(write, conformed))


def _as_written(write: Write, prefix: str) -> AsWritten:
    if write.options.validation == "Ignore":
        return AsWritten()
    found = repeated_in(write.request.body)
    return replace(found, repeated=[f"{prefix}{text}" for text in found.repeated])


def _conform_patched(write: Write, new: Obj, old: Obj, written: AsWritten) -> Obj:
    """Checks types and unknown fields of `new`, which is changed in place."""
    kind, schema = write.target.kind, write.api.schema(write.target.kind)
    new |= {"apiVersion": old["apiVersion"], "kind": old["kind"]}
    new.setdefault("metadata", {})
    refusal, warnings = examine(new, kind, schema, write.options.validation, written)
    if refusal:
        sent = write.request.body.decode("utf-8", "replace")
        refused = status.invalid("", "", "", [status.invalid_value("patch", sent, refusal)])
        del refused.status["details"]["kind"]
        raise refused
    write.request.warnings += warnings
    if kind.custom:
        write.api.custom.version(kind).apply_defaults(new)
    return new


def change_of(api: Api, request: Request, target: Target, media: str) -> Change:
    """The patch in the body as a function. Scale has its own document but the same patches."""
    if media == JSON_PATCH:
        return lambda old: apply_json_patch(old, request.body)
    if media == MERGE_PATCH:
        return lambda old: apply_merge_patch(old, request.body)
    if media == STRATEGIC_PATCH and not target.kind.custom:
        schema = api.schema(target.kind)
        return lambda old: apply_strategic(old, request.body, schema)
    if media == STRATEGIC_PATCH:  # nobody has said how the lists of custom kinds merge
        raise status.unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    raise status.failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def _bad_options(problem: FieldError) -> ApiError:
    return status.invalid("PatchOptions", "meta.k8s.io", "", [problem])


async def _apply(write: Write) -> Answer:
    api, target, options = write.api, write.target, write.options
    if not options.manager_given:
        raise _bad_options(status.required("fieldManager", "is required for apply patch"))
    live = api.store.get(target.kind.resource, target.namespace, target.name)
    if live is None and not target.subresource:
        merged = await write.done(lambda: _merged(write, None))
        _check_new(merged["metadata"], target)
        place(merged, target)
        written = await create_object(write, merged)
        return await answer_written(write, written, 201)
    written = await update_object(write, lambda old: _merged(write, old))
    return await answer_written(write, written)


def _check_new(metadata: Obj, target: Target) -> None:
    metadata.pop("resourceVersion", None)
    uid = metadata.get("uid")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, "
        why += "and no existing object was found"
        raise status.conflict(target.kind, target.name, why)


def _merged(write: Write, live: Obj | None) -> Obj:
    """The object after the apply; a configuration that fits no schema is refused by `apply`."""
    target, kind = write.target, write.target.kind
    schema, force = write.api.schema(kind), bool(write.options.force)
    config = read_yaml(write.request.body)
    new = server_side_apply.apply(live, config, write.writer(), kind, schema, force=force)
    metadata = new["metadata"]
    if metadata.setdefault("name", target.name) != target.name:
        raise status.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({target.name})"
        )
    conform_object(write, new, AsWritten(in_order=False))
    return new
