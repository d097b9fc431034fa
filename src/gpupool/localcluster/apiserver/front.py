"""The front door: what a request off the wire passes before the app, and what is noted after it.

Requests from inside the process do not come through here: they bring their user with them.
"""

import time

from gpupool.localcluster.apiserver import status
from gpupool.localcluster.apiserver.api import Api
from gpupool.localcluster.apiserver.app import App
from gpupool.localcluster.apiserver.request import Answer, Reply, Request, Upgrade
from gpupool.localcluster.apiserver.security.audit import AuditLog, Done
from gpupool.localcluster.apiserver.security.origin import refuse_foreign
from gpupool.localcluster.apiserver.status import ApiError

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Front:
    def __init__(self, api: Api, app: App, audit: AuditLog) -> None:
        self._api = api
        self._app = app
        self._audit = audit

    async def handle(self, request: Request) -> Reply:
        try:
            refused = refuse_foreign(request, frozenset())
            if refused is not None:
                return refused
            request.user = self._api.authenticator.authenticate(request)
            if request.user is None:
                raise status.unauthorized()
            if request.method in _READING:
                return self._held(request, await self._app.handle(request))
            with self._api.in_flight.mutations:
                return await self._audited(request)
        except ApiError as error:
            return error.answer()

    def _held(self, request: Request, reply: Reply) -> Reply:
        """A stream takes a place for as long as it lasts."""
        if isinstance(reply, Answer):
            return reply
        assert request.user is not None
        in_flight, user = self._api.in_flight, request.user.name
        if isinstance(reply, Upgrade):
            slot = in_flight.stream(user)
        elif request.access is not None and request.access.subresource == "log":
            slot = in_flight.followed_log(user)
        else:
            slot = in_flight.watch(user)
        with slot:
            return slot.hold(reply)

    async def _audited(self, request: Request) -> Reply:
        began_s, clock = time.monotonic(), self._api.clock
        reply = await self._app.handle(request)
        if request.access is not None and request.user is not None:
            self._audit.record(
                Done(
                    at_s=clock(),
                    user=request.user.name,
                    access=request.access,
                    code=reply.status if isinstance(reply, Answer) else 200,
                    ms=(time.monotonic() - began_s) * 1000,
                    query=request.query_string,
                )
            )
        return reply
