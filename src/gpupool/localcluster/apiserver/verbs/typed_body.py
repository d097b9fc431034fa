"""Bodies that are not the resource itself: options, bindings, evictions, scales."""

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver import status
from gpupool.localcluster.apiserver.decode.body import read_any
from gpupool.localcluster.apiserver.request import Request
from gpupool.localcluster.apiserver.schema.check import check
from gpupool.localcluster.apiserver.schema.fast import is_clean
from gpupool.localcluster.apiserver.schema.load import schema_of


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
