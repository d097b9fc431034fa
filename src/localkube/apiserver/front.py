"""Front: authenticates requests from the network, limits how many run at a time, and audits them.

Clients inside the process call the app directly, with their user.
"""

import time

from localkube.apiserver import status
from localkube.apiserver.api import Api
from localkube.apiserver.app import App
from localkube.apiserver.request import Answer, Reply, Request, Stream, Upgrade
from localkube.apiserver.security.audit import AuditLog, Done
from localkube.apiserver.security.origin import refuse_foreign
from localkube.apiserver.status import ApiError

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
                return await self._read(request)
            with self._api.in_flight.mutations:
                began_s = time.monotonic()
                reply = await self._app.handle(request)
                self._note(request, reply, began_s)
                return reply
        except ApiError as error:
            return error.answer()

    async def _read(self, request: Request) -> Reply:
        began_s = time.monotonic()
        reply = await self._app.handle(request)
        if isinstance(reply, Answer):
            return reply
        if isinstance(reply, Upgrade):  # exec and its like: code is run, whatever the method says
            self._note(request, reply, began_s)
        try:
            return self._held(request, reply)
        except ApiError:
            if isinstance(reply, Stream):
                await reply.chunks.aclose()  # type: ignore[attr-defined]  # a generator: it has one
            raise

    def _held(self, request: Request, reply: Stream | Upgrade) -> Reply:
        """A stream holds one of the limited places until it ends."""
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

    def _note(self, request: Request, reply: Reply, began_s: float) -> None:
        if request.access is None or request.user is None:
            return
        self._audit.record(
            Done(
                at_s=self._api.clock(),
                user=request.user.name,
                access=request.access,
                code=reply.status if isinstance(reply, Answer) else 101,
                ms=(time.monotonic() - began_s) * 1000,
                query=request.query_string,
                requester=request.requester,
            )
        )
