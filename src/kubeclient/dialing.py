"""Connects to an API server: addresses, TLS, and the proxy in between."""

import asyncio
import base64
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit

from kubeclient.access import Access
from kubeclient.http1 import Connection
from kubeclient.proxies import PORTS

Wire = TypeVar("Wire", bound=asyncio.Protocol)

_NEXT_ADDRESS_S = 0.25  # until the next address of a host is tried beside the one before
_MAX_HEAD_BYTES = 2**16
# A watch may be silent for a long time. TCP keepalive finds out that the peer is gone.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class CannotConnect(Exception):
    def __init__(self, place: "Place", cause: OSError, *, is_proxy: bool) -> None:
        super().__init__(place, cause)
        self.place, self.cause, self.is_proxy = place, cause, is_proxy


class NotTrusted(Exception):
    def __init__(self, place: "Place", cause: OSError) -> None:
        super().__init__(place, cause)
        self.place, self.cause = place, cause


class ProxyRefuses(Exception):
    def __init__(self, place: "Place", answer: str) -> None:
        super().__init__(place, answer)
        self.place, self.answer = place, answer


class BadUrl(ValueError):
    """Of a server."""


class BadProxyUrl(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Place:
    scheme: str
    host: str
    port: int
    user: str = ""  # and the password, as in Basic authorization

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else str(self)

    @property
    def host_header(self) -> str:
        """Without the usual port: many who choose a server by this name do not take it off."""
        return self.authority.removesuffix(f":{PORTS[self.scheme]}")

    def basic(self) -> str:
        """The value of the header for it; empty: no user is named."""
        return f"Basic {base64.b64encode(self.user.encode()).decode()}" if self.user else ""


@dataclass(frozen=True, slots=True)
class Route:
    server: Place
    proxy: Place | None

    @property
    def target(self) -> str:
        """What goes before the path in a request: a proxy must be told the server, unless it only
        passes TLS on."""
        is_told = self.proxy is not None and self.server.scheme == "http"
        return f"http://{self.server.authority}" if is_told else ""


def route_of(access: Access) -> Route:
    """Raises BadUrl, BadProxyUrl."""
    try:
        server = _place(urlsplit(access.url))
    except ValueError as error:
        raise BadUrl(access.url) from error
    try:
        proxy = _place(urlsplit(access.proxy)) if access.proxy else None
    except ValueError as error:
        raise BadProxyUrl(access.proxy) from error
    return Route(server, proxy)


def _place(parts: SplitResult) -> Place:
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(parts)
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    port = PORTS[parts.scheme] if parts.port is None else parts.port
    return Place(parts.scheme, parts.hostname, port, "" if user == ":" else user)


async def dial(route: Route, tls: ssl.SSLContext, server_name: str) -> Connection:
    """Raises CannotConnect, NotTrusted, ProxyRefuses."""
    context = tls if route.server.scheme == "https" else None
    name = server_name or route.server.host
    if route.proxy is None:
        return await _open(route.server, Connection(), context, name)
    on_the_way = tls if route.proxy.scheme == "https" else None
    if context is None:
        connection = Connection()
        return await _open(route.proxy, connection, on_the_way, route.proxy.host, is_proxy=True)
    tunnel = await _open(route.proxy, _Tunnel(), on_the_way, route.proxy.host, is_proxy=True)
    try:
        await tunnel.lead_to(route.server, route.proxy)
        with _failures(route.server):
            return await _over_tls(tunnel.transport, Connection(), context, name)
    except BaseException:
        tunnel.transport.abort()
        raise


async def _open(
    place: Place, protocol: Wire, tls: ssl.SSLContext | None, name: str, *, is_proxy: bool = False
) -> Wire:
    with _failures(place, is_proxy=is_proxy):
        plain = await _connected(place)
        try:
            _notice_a_dead_peer(plain)
            # Without TLS: if it is cancelled before it has begun with that, asyncio goes on reading
            # from a number of a file that is closed, and soon is that of another connection.
            transport, _ = await asyncio.get_running_loop().create_connection(
                lambda: protocol if tls is None else asyncio.Protocol(), sock=plain
            )
        except BaseException:
            plain.close()
            raise
        if tls is None:
            return protocol
        try:
            return await _over_tls(transport, protocol, tls, name)
        except BaseException:
            transport.abort()
            raise


async def _over_tls(
    transport: asyncio.Transport, protocol: Wire, tls: ssl.SSLContext, name: str
) -> Wire:
    loop = asyncio.get_running_loop()
    secured = await loop.start_tls(transport, protocol, tls, server_hostname=name)
    if secured is None or secured.is_closing():  # it ended just now
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
    protocol.connection_made(secured)
    return protocol


@contextlib.contextmanager
def _failures(place: Place, *, is_proxy: bool = False) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise NotTrusted(place, error) from error
    except OSError as error:
        raise CannotConnect(place, error, is_proxy=is_proxy) from error


async def _connected(place: Place) -> socket.socket:
    found = await _addresses(place)
    if len(found) > 1:
        from aiohappyeyeballs import start_connection

        return await start_connection(cast("Any", found), happy_eyeballs_delay=_NEXT_ADDRESS_S)
    family, kind, protocol, _, address = found[0]
    plain = socket.socket(family, kind, protocol)
    try:
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, address)
    except BaseException:
        plain.close()
        raise
    return plain


async def _addresses(place: Place) -> list[Any]:
    """As getaddrinfo returns them."""
    try:  # without a thread, as it asks nobody
        return socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)


def _notice_a_dead_peer(plain: socket.socket) -> None:
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class _Tunnel(asyncio.Protocol):
    """Asks a proxy to pass bytes on to a server. Nothing else comes on this connection."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport = asyncio.Transport()
        self._received = b""
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._says_more = False

    async def lead_to(self, server: Place, proxy: Place) -> None:
        """Raises ProxyRefuses."""
        lines = [f"CONNECT {server.authority} HTTP/1.1", f"host: {server.authority}"]
        if basic := proxy.basic():
            lines.append(f"proxy-authorization: {basic}")
        self.transport.write("\r\n".join([*lines, "", ""]).encode())
        words = (await self._answer).decode("latin-1").split(None, 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or words[1] != "200":
            raise ProxyRefuses(proxy, " ".join(words[1:]) or "no answer")
        if self._says_more:  # the server speaks after us, so the proxy has not led us to one
            raise ProxyRefuses(proxy, "no answer")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if self._answer.done():
            return
        if end:
            self._answer.set_result(head.split(b"\r\n")[0])
            self._says_more = bool(rest)
        elif len(self._received) > _MAX_HEAD_BYTES:
            self._answer.set_result(b"")

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_result(b"")
