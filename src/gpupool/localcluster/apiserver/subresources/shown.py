"""Webhooks are asked about what is POSTed to a subresource, as they are about objects."""

import dataclasses
from functools import lru_cache

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.admission.attributes import Attributes, Operation
from gpupool.localcluster.apiserver.api import Api
from gpupool.localcluster.apiserver.kinds import Kind
from gpupool.localcluster.apiserver.request import Request
from gpupool.localcluster.apiserver.routing import Target


async def show_webhooks(
    api: Api, request: Request, target: Target, body: Obj, *, dry_run: bool
) -> None:
    """They may refuse the body, or change it in place."""
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
    await api.admission.show_webhooks(attributes)


@lru_cache(maxsize=16)
def _as_body(kind: Kind, name: str) -> Kind:
    return dataclasses.replace(kind, kind=name or kind.kind)
