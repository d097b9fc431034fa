"""The main flow of a request: find its target, authorise its user, and call the verb's handler.

`App.handle` is called by the front door (front.py), which has authenticated the user, and by the
in-process transport, which brings the user along. A refusal (ApiError) and a store that cannot be
written become answers here. Any other exception is a bug and is raised: the HTTP layer logs it and
answers with a 500 (http/protocol.py), and a caller inside the process sees the exception itself.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from localkube.apiserver import pages, status
from localkube.apiserver.aggregation.access import access_of
from localkube.apiserver.aggregation.registry import Remote
from localkube.apiserver.api import Api
from localkube.apiserver.decode.weight import MAX_VALUES, TooManyValues
from localkube.apiserver.large_writes import LARGE_BYTES
from localkube.apiserver.request import Answer, Reply, Request, User
from localkube.apiserver.routing import NoResource, NotApi, Target, route
from localkube.apiserver.security.access import Access, forbidden, scoped
from localkube.apiserver.status import ApiError
from localkube.apiserver.store.store import OBJECT_BYTES, NotWritten, TooLarge
from localkube.apiserver.subresources.table import special_handler
from localkube.apiserver.verbs.create import create
from localkube.apiserver.verbs.delete import delete, delete_collection
from localkube.apiserver.verbs.options import list_options
from localkube.apiserver.verbs.patch import patch
from localkube.apiserver.verbs.read import get, list_
from localkube.apiserver.verbs.update import update
from localkube.apiserver.verbs.watch import watch

log = logging.getLogger(__name__)

_ENDPOINTS_DEPRECATED = (
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
)

Act = Callable[[Api, Request, Target], Awaitable[Reply]]


class App:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def handle(self, request: Request) -> Reply:
        try:
            return await self._handle(request)
        except ApiError as error:
            return error.answer()
        except TooLarge:
            return status.too_large(OBJECT_BYTES).answer()
        except TooManyValues:
            return status.too_many_values(MAX_VALUES).answer()
        except NotWritten as error:
            return status.internal(
                f"the cluster's store could not be written ({error}): nothing was changed; "
                "free some disk space and try again"
            ).answer()

    async def _handle(self, request: Request) -> Reply:
        api = self._api
        remote = api.aggregation.remotes.of_path(request.path)
        if remote is not None:
            return await self._forward(request, remote)
        target = route(request.path, api.kinds)
        if isinstance(target, NotApi):
            return await pages.answer(api, request, target)
        if request.user is None:
            raise status.unauthorized()
        if isinstance(target, NoResource):
            self._refuse(request, request.user, target)
        verb = _verb(request, target)
        self._authorise(request, request.user, target, verb)
        if target.kind.resource == "endpoints":
            request.warnings.append(_ENDPOINTS_DEPRECATED)
        handler = special_handler(target, request.method)
        if handler is None:
            if target.subresource not in ("", "status") or verb not in _verbs_of(target):
                raise status.method_not_allowed()
            handler = _ACTS[verb]
        # A GET makes no object of its body, and may wait for long: for the first line of a log.
        if len(request.body) <= LARGE_BYTES or request.method == "GET":
            return await handler(api, request, target)
        async with api.large_writes.turn(request.user.name):
            return await handler(api, request, target)

    async def _forward(self, request: Request, remote: Remote) -> Reply:
        user = request.user
        if user is None:
            raise status.unauthorized()
        request.access = access = access_of(request, remote)
        verdict = self._api.authorizer.allowed(user, access)
        if not verdict.allowed:
            raise forbidden(user, access, verdict.reason)
        return await self._api.aggregation.forwarder.forward(request, user, remote)

    def _refuse(self, request: Request, user: User, target: NoResource) -> NoReturn:
        group, resource, namespace, name, subresource = target
        verb = _BY_METHOD.get(request.method) or ("get" if name else "list")
        access = Access(verb, group, resource, subresource, namespace, name)
        verdict = self._api.authorizer.allowed(user, access)
        if not verdict.allowed:
            raise forbidden(user, access, verdict.reason)
        raise status.no_such_resource()

    def _authorise(self, request: Request, user: User, target: Target, verb: str) -> None:
        access = scoped(
            Access(
                verb=verb,
                group=target.kind.group,
                resource=target.kind.plural,
                subresource=target.subresource,
                namespace=target.namespace,
                name=target.name,
                field_selector=request.text("fieldSelector") if not target.name else "",
            )
        )
        request.access = access
        verdict = self._api.authorizer.allowed(user, access)
        if not verdict.allowed:
            raise forbidden(user, access, verdict.reason)


_BY_METHOD = {"POST": "create", "PUT": "update", "PATCH": "patch"}
# What runs in a pod is changed by whoever may open these, whatever the HTTP method says.
_CREATING_STREAMS = frozenset({"exec", "attach", "portforward"})


def _verb(request: Request, target: Target) -> str:
    """The verb that RBAC knows."""
    if target.subresource in _CREATING_STREAMS:
        return "create"
    match request.method:
        case "GET" if target.watched:
            return "watch"
        case "GET":
            if target.name:
                return "get"
            return "watch" if request.flag("watch") else "list"
        case "DELETE":
            return "delete" if target.name else "deletecollection"
        case "POST" | "PUT" | "PATCH" as method:
            if bool(target.name) is (method == "POST") and not target.subresource:
                raise status.method_not_allowed()
            if target.all_namespaces and not target.kind.virtual:
                raise status.method_not_allowed()
            return _BY_METHOD[method]
        case _:
            raise status.method_not_allowed()


def _verbs_of(target: Target) -> tuple[str, ...]:
    return target.sub.verbs if target.sub is not None else target.kind.verbs


async def _list(api: Api, request: Request, target: Target) -> Answer:
    return await list_(api, request, target, list_options(request))


async def _watch(api: Api, request: Request, target: Target) -> Reply:
    return await watch(api, request, target, list_options(request))


async def _delete_collection(api: Api, request: Request, target: Target) -> Answer:
    return await delete_collection(api, request, target, list_options(request))


_ACTS: dict[str, Act] = {
    "get": get,
    "list": _list,
    "watch": _watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": _delete_collection,
}
