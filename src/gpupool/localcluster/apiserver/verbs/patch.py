"""patch: JSON patch, merge patch, strategic merge patch and server-side apply."""

from collections.abc import Callable

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver import status
from gpupool.localcluster.apiserver.api import Api
from gpupool.localcluster.apiserver.decode.body import read_yaml
from gpupool.localcluster.apiserver.patch import server_side_apply
from gpupool.localcluster.apiserver.patch.json_patch import apply_json_patch
from gpupool.localcluster.apiserver.patch.merge_patch import apply_merge_patch
from gpupool.localcluster.apiserver.patch.strategic_merge import apply_strategic
from gpupool.localcluster.apiserver.request import Answer, Request
from gpupool.localcluster.apiserver.routing import Target
from gpupool.localcluster.apiserver.verbs.create import Write, conform_object, create_object
from gpupool.localcluster.apiserver.verbs.metadata import place
from gpupool.localcluster.apiserver.verbs.options import write_options
from gpupool.localcluster.apiserver.verbs.read import existing
from gpupool.localcluster.apiserver.verbs.update import Change, answer_written, update_object

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def patch(api: Api, request: Request, target: Target) -> Answer:
    media = request.headers.get("content-type", "").split(";", 1)[0].strip()
    write = Write(api, request, target, write_options(request, "PatchOptions"))
    if media == APPLY_PATCH:
        return await _apply(write._replace(applied=True))
    change = change_of(api, request, target, media)
    existing(api, target)

    def conformed(old: Obj) -> Obj:
        new = change(old)
        if not isinstance(new, dict):
            raise status.bad_request("a patch must leave a JSON object")
        new |= {"apiVersion": old["apiVersion"], "kind": old["kind"]}
        new.setdefault("metadata", {})
        conform_object(write, new)
        return new

    # No lock: a version named in the patch is compared by carry_over, in each attempt.
    written = await update_object(write, conformed)
    return answer_written(api, request, target, written)


def change_of(api: Api, request: Request, target: Target, media: str) -> Change:
    """The patch in the body as a function. Scale has its own document but the same patches."""
    if media == JSON_PATCH:
        return lambda old: apply_json_patch(old, request.body)
    if media == MERGE_PATCH:
        return lambda old: apply_merge_patch(old, request.body)
    if media == STRATEGIC_PATCH and not target.kind.custom:
        schema = api.schema(target.kind)
        return lambda old: apply_strategic(old, request.body, schema)
    raise status.failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


async def _apply(write: Write) -> Answer:
    api, request, target, options, _ = write
    if not options.manager_given:
        errors = [status.required("fieldManager", "is required for apply patch")]
        raise status.invalid("PatchOptions", "meta.k8s.io", "", errors)
    config = read_yaml(request.body)
    _check_applied(config, target)
    conform_object(write, config)
    live = api.store.get(target.kind.resource, target.namespace, target.name)
    merge = _merger(write, config)
    if live is None and not target.subresource:
        if config["metadata"].get("uid"):
            raise status.conflict(
                target.kind,
                target.name,
                f"uid mismatch: the provided object specified uid {config['metadata']['uid']}, "
                "and no existing object was found",
            )
        place(config, target)
        written = await create_object(write, merge(None))
        return answer_written(api, request, target, written, 201)
    written = await update_object(write, merge)
    return answer_written(api, request, target, written)


def _check_applied(config: Obj, target: Target) -> None:
    kind = target.kind
    for field, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        found = config.get(field)
        if found != wanted:
            raise status.bad_request(
                f"invalid object type in apply patch: {field}: wanted {wanted}, found {found}"
            )
    metadata = config.setdefault("metadata", {})
    if metadata.setdefault("name", target.name) != target.name:
        raise status.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({target.name})"
        )


def _merger(write: Write, config: Obj) -> Callable[[Obj | None], Obj]:
    api, kind = write.api, write.target.kind

    def merge(live: Obj | None) -> Obj:
        return server_side_apply.apply(
            live, config, write.writer(), kind, api.schema(kind), force=write.options.force
        )

    return merge
