"""Bodies that are not the resource itself: options, bindings, evictions, scales."""

from collections.abc import Callable
from typing import TypeVar

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.decode.body import read_any
from localkube.apiserver.decode.weight import is_long
from localkube.apiserver.request import Request
from localkube.apiserver.schema.check import check
from localkube.apiserver.schema.fast import is_clean
from localkube.apiserver.schema.load import schema_of

_T = TypeVar("_T")


async def done(api: Api, request: Request, step: Callable[[], _T]) -> _T:
    """A step that reads the body; aside if the body is long."""
    if not is_long(request.body, request.headers.get("content-type", "")):
        return step()
    user = request.user.name if request.user is not None else ""
    return await api.long_work.done(user, step)


async def typed_body(api: Api, request: Request, group: str, version: str, kind: str) -> Obj:
    """With every field of the type that the schema says; empty for an empty body."""
    media = request.headers.get("content-type", "")
    return await done(
        api, request, lambda: typed(read_any(request.body, media), group, version, kind)
    )


def typed(obj: Obj, group: str, version: str, kind: str) -> Obj:
    schema = schema_of(group, version, kind)
    problem = "" if is_clean(obj, schema) else check(obj, schema).error
    if problem:
        raise status.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}'
        )
    return obj
