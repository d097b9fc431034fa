"""Subresources that change one part of a pod: ephemeralcontainers (kubectl debug) and resize."""

from collections.abc import Callable

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.api import Api
from localkube.apiserver.decode.body import read_object
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.schema.strictness import AsWritten
from localkube.apiserver.verbs.create import answer_written, conform_object, write_of
from localkube.apiserver.verbs.options import write_options
from localkube.apiserver.verbs.patch import change_of
from localkube.apiserver.verbs.typed_body import done
from localkube.apiserver.verbs.update import update_object, whole_body

# Moves the one part from the new object into the old one.
KeepOnly = Callable[[Obj, Obj], None]


async def change_ephemeral_containers(api: Api, request: Request, target: Target) -> Answer:
    def keep_only(new: Obj, old: Obj) -> None:
        old["spec"]["ephemeralContainers"] = new.get("spec", {}).get("ephemeralContainers") or []

    return await _change(api, request, target, keep_only)


async def resize(api: Api, request: Request, target: Target) -> Answer:
    def keep_only(new: Obj, old: Obj) -> None:
        sizes = {c["name"]: c.get("resources") for c in new.get("spec", {}).get("containers") or ()}
        for container in old["spec"]["containers"]:
            if sizes.get(container["name"]) is not None:
                container["resources"] = sizes[container["name"]]

    return await _change(api, request, target, keep_only)


async def _change(api: Api, request: Request, target: Target, keep_only: KeepOnly) -> Answer:
    """Takes the one part from what was sent; all else stays."""
    media = request.headers.get("content-type", "").split(";", 1)[0].strip()
    if request.method == "PUT":
        options = write_options(request, "UpdateOptions")
        change = await done(
            api, request, lambda: whole_body(read_object(request.body, media, target.kind))
        )
    else:
        options = write_options(request, "PatchOptions")
        change = change_of(api, request, target, media)
    write = write_of(api, request, target, options)

    def conformed(old: Obj) -> Obj:
        new = change(old)
        conform_object(write, new, AsWritten(in_order=request.method == "PUT"))
        return new

    def merged(old: Obj) -> Obj:
        result: Obj = orjson.loads(orjson.dumps(old))
        keep_only(conformed(old), result)
        return result

    written = await update_object(write, merged)
    return await answer_written(write, written)
