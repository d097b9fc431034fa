"""Bodies that are not the resource itself: options, bindings, evictions, scales."""

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.decode.body import read_any
from localkube.apiserver.request import Request
from localkube.apiserver.schema.check import check
from localkube.apiserver.schema.fast import is_clean
from localkube.apiserver.schema.load import schema_of


def typed_body(request: Request, group: str, version: str, kind: str) -> Obj:
    """With every field of the type that the schema says; empty for an empty body."""
    return typed(
        read_any(request.body, request.headers.get("content-type", "")), group, version, kind
    )


def typed(obj: Obj, group: str, version: str, kind: str) -> Obj:
    schema = schema_of(group, version, kind)
    problem = "" if is_clean(obj, schema) else check(obj, schema).error
    if problem:
        raise status.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}'
        )
    return obj
