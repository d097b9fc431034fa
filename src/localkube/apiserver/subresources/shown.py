"""Shows webhooks and policies what is POSTed to a subresource: Bindings and Evictions."""

import dataclasses
from functools import lru_cache

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes, Operation
from localkube.apiserver.api import Api
from localkube.apiserver.kinds import Kind
from localkube.apiserver.request import Request
from localkube.apiserver.routing import Target


async def show_others(
    api: Api, request: Request, target: Target, body: Obj, *, dry_run: bool
) -> None:
    """They may refuse the body, and webhooks may change it in place."""
    attributes = Attributes(
        operation=Operation.CREATE,
        kind=_as_body(target.kind, str(body.get("kind", ""))),
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name,
        user=request.user,
        obj=body,
        old=None,
        dry_run=dry_run,
        options={},
        warnings=request.warnings,
    )
    await api.admission.show_others(attributes)


@lru_cache(maxsize=16)
def _as_body(kind: Kind, name: str) -> Kind:
    return dataclasses.replace(kind, kind=name or kind.kind)
