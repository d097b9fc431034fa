"""What the HTTP layer hands to the app, and what the app hands back.

The app is a function from Request to Reply, so the wire (TLS sockets, or a call from inside the
process) can be swapped without touching a handler.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias
from urllib.parse import parse_qs

import msgspec

if TYPE_CHECKING:
    from localkube.apiserver.security.access import Access


class User(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


class ClientCertificate(msgspec.Struct, frozen=True):
    """That of the connection, verified."""

    user: User
    ends_s: float


class Request(msgspec.Struct):
    """One request. `user` is set by authentication, or by the in-process transport."""

    method: str
    path: str  # percent-encoded, without the query
    query_string: str = ""
    headers: Mapping[str, str] = {}  # names in lower case
    body: bytes = b""
    certificate: ClientCertificate | None = None
    user: User | None = None
    requester: str = ""  # who really sent it, if `user` is impersonated
    # Writers inside the process (controllers, kubelets) leave no managedFields: see
    # docs/decisions/0005-managed-fields.md.
    track_fields: bool = True
    warnings: list[str] = []  # sent back as Warning headers
    access: "Access | None" = None  # what it wants to do, once that is known
    _query: dict[str, list[str]] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        if self._query is None:
            text = self.query_string
            self._query = parse_qs(text, keep_blank_values=True) if text else {}
        return self._query

    def text(self, key: str, default: str = "") -> str:
        values = self.query.get(key)
        return values[0] if values else default

    def flag(self, key: str) -> bool:
        """Kubernetes' rule: absent, "0" and "false" are false; all else, even empty, is true."""
        values = self.query.get(key)
        return values is not None and values[0] != "0" and values[0].lower() != "false"


class Answer(msgspec.Struct):
    """A whole answer, in memory."""

    status: int
    body: bytes | Sequence[bytes] = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Stream(msgspec.Struct):
    """An answer in chunks: watch, logs. The HTTP layer closes `chunks` when the client leaves."""

    chunks: AsyncIterator[bytes]
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class WebSocket(Protocol):
    """An accepted WebSocket, as stream handlers (exec, attach, port-forward) see it."""

    subprotocol: str

    async def receive(self) -> bytes | str | None:
        """The next message; None when the client has closed."""

    async def send(self, data: bytes | str) -> None:
        """Binary for bytes, text for a str. Raises ConnectionResetError once the client is gone."""

    async def close(self, code: int = 1000, reason: str = "") -> None: ...

    async def wait_lost(self) -> None:
        """Returns when the connection is gone, even while nobody receives."""


class Upgrade(msgspec.Struct):
    """Accept the WebSocket with the first of `subprotocols` that the client offered, then run."""

    subprotocols: tuple[str, ...]
    run: Callable[[WebSocket], Awaitable[None]]


Reply: TypeAlias = Answer | Stream | Upgrade
Handler: TypeAlias = Callable[[Request], Awaitable[Reply]]
