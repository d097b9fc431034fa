"""The transport over HTTPS, with one pool of kept-alive connections.

An answer of 429 or 503 with Retry-After is retried here, within the time limit: the server
certainly did nothing. Other failures are NoAnswer: the request may have happened, so the caller
must decide.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kubeclient import __version__
from kubeclient.access import Access, NoAccess, tls_words
from kubeclient.client import Headers, Kube, Query, WebSocket
from kubeclient.errors import NoAnswer, refusal
from kubeclient.objects import Obj

if TYPE_CHECKING:
    import aiohttp

CALL_LIMIT_S = 30.0
MAX_ANSWER_BYTES = 1024**3  # enough for a list of some hundred thousand pods
_CONNECTIONS = 256
_CONNECT_LIMIT_S = 10.0
_CLOSE_LIMIT_S = 0.5  # until the other side confirms the end of a WebSocket
_COME_BACK = (429, 503)
_MOST_TRIES = 10
_WATCH_GRACE_S = 30.0
# A watch may be silent for a long time. TCP keepalive finds out that the peer is gone.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


@contextlib.asynccontextmanager
async def connected(access: Access, agent: str) -> AsyncIterator[Kube]:
    """A client. `agent`: the program's name for the User-Agent header."""
    transport = Https(access, agent)
    try:
        yield Kube(transport)
    finally:
        await transport.close()


class Https:
    """Create it on the event loop that uses it; `close` closes its connections."""

    def __init__(self, access: Access, agent: str, *, limit_s: float = CALL_LIMIT_S) -> None:
        import aiohttp  # slow to import, and not every program needs it

        self._access = access
        self._limit_s = limit_s
        host = urlsplit(access.url).hostname or ""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=access.tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"{agent}/{__version__}"},
            # The proxy of the environment, as kubectl does; never for the loopback interface.
            trust_env=host != "localhost" and not host.startswith("127.") and host != "::1",
            read_bufsize=2**20,
            timeout=aiohttp.ClientTimeout(),  # each call has a limit of its own, for all its tries
        )

    async def close(self) -> None:
        await self._session.close()

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._limit_s
        with _failures(method, self._access.url, path):
            async with asyncio.timeout_at(deadline):
                for tries_left in reversed(range(_MOST_TRIES)):
                    options = await self._options(query, headers)
                    async with self._session.request(
                        method, self._access.url + path, data=body or None, **options
                    ) as response:
                        answer = await _read(response)
                    wait_s = _come_back_s(response)
                    if wait_s is None or not tries_left or clock() + wait_s >= deadline:
                        break
                    await asyncio.sleep(wait_s)
        return response.status, answer

    async def stream(
        self, path: str, *, query: Query, headers: Headers
    ) -> AsyncGenerator[bytes, None]:
        import aiohttp

        limits = aiohttp.ClientTimeout(
            sock_connect=_CONNECT_LIMIT_S, sock_read=_longest_silence_s(query)
        )
        with _failures("GET", self._access.url, path):
            options = await self._options(query, headers)
            async with self._session.get(
                self._access.url + path, timeout=limits, **options
            ) as response:
                if response.status >= 400:
                    raise refusal(response.status, await _read(response))
                _notice_a_dead_peer(response)
                async for chunk in response.content.iter_any():
                    yield chunk

    @contextlib.asynccontextmanager
    async def websocket(
        self, path: str, *, query: Query, protocol: str
    ) -> AsyncIterator[WebSocket]:
        import aiohttp

        what = f"GET {self._access.url}{path}"
        with _failures("GET", self._access.url, path):
            options = await self._options(query, {})
            del options["allow_redirects"]  # a WebSocket is never redirected
            try:
                opened = await self._session.ws_connect(
                    self._access.url + path,
                    protocols=(protocol,),
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_LIMIT_S),
                    **options,
                )
            except aiohttp.WSServerHandshakeError as error:
                raise refusal(error.status, f"{what}: HTTP {error.status}".encode()) from error
        connection = opened._response.connection  # there is no public way to it
        transport = connection.transport if connection is not None else None
        try:
            async with opened:
                yield _WebSocket(opened, what)
        finally:
            # It is used for nothing else, and aiohttp would wait for the server's end of TLS in the
            # background, even after this client is closed. Python 3.11.2 (Debian 12) cannot abort
            # a connection that was closed twice.
            if transport is not None:
                with contextlib.suppress(AttributeError):
                    transport.abort()

    async def _options(self, query: Query, headers: Headers) -> Obj:
        authorization = await self._access.authorization()
        return {
            "params": query,
            "headers": {**headers, "authorization": authorization} if authorization else headers,
            "server_hostname": self._access.server_name or None,
            "proxy": self._access.proxy or None,
            # An API server has no reason to redirect, and credentials must not follow to another
            # host.
            "allow_redirects": False,
        }


class _WebSocket:
    def __init__(self, socket: "aiohttp.ClientWebSocketResponse[bool]", what: str) -> None:
        self._socket = socket
        self._what = what

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send_bytes(message)
        except ConnectionError as error:
            raise NoAnswer(f"{self._what}: {error}") from error

    async def receive(self) -> bytes | None:
        import aiohttp

        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.ERROR:
            raise NoAnswer(f"{self._what}: {message.data}")
        return message.data if message.type is aiohttp.WSMsgType.BINARY else None


@contextlib.contextmanager
def _failures(method: str, url: str, path: str) -> Iterator[None]:
    """Raise NoAnswer for every failure of the connection, and for missing credentials."""
    what = f"{method} {url}{path}"
    import aiohttp

    try:
        yield
    except TimeoutError:
        raise NoAnswer(f"{what}: no answer in time") from None
    except aiohttp.ClientSSLError as error:
        untrusted = tls_words(error.__cause__ or error)
        words = (
            f"no safe connection to {error.host}:{error.port} ({untrusted}); look at "
            "certificate-authority and tls-server-name of the cluster in the kubeconfig"
        )
        raise NoAnswer(f"{what}: {words}") from error
    except aiohttp.ServerDisconnectedError as error:
        words = "the server ended the connection without an answer; is its URL right"
        hint = ", or does it want https://?" if url.startswith("http://") else "?"
        raise NoAnswer(f"{what}: {words}{hint}") from error
    except aiohttp.ClientConnectorError as error:
        # The error of the last address, in the words of the system, without those of the library.
        number = error.os_error.errno or 0
        cause = os.strerror(number) if number > 0 else error.os_error.strerror
        words = f"nothing answers at {error.host}:{error.port} ({cause}); does the cluster run?"
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            words = (
                f"the proxy {error.host}:{error.port} does not answer ({cause}); "
                "look at HTTPS_PROXY, and at proxy-url in the kubeconfig"
            )
        raise NoAnswer(f"{what}: {words}") from error
    except aiohttp.InvalidURL as error:
        shown = str(error.args[0]) if error.args else url
        if shown.startswith(url):
            words = f'wanted a server like https://HOST:PORT in the kubeconfig, found "{url}"'
        else:
            words = f'wanted a proxy like http://HOST:PORT in HTTPS_PROXY, found "{shown}"'
        raise NoAnswer(words) from error
    except (aiohttp.ClientError, OSError, ValueError, NoAccess) as error:
        raise NoAnswer(f"{what}: {str(error) or type(error).__name__}") from error


async def _read(response: "aiohttp.ClientResponse") -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def _come_back_s(response: "aiohttp.ClientResponse") -> float | None:
    """Seconds after which a busy server wants to be asked again; None: do not retry."""
    stated = response.headers.get("Retry-After", "")
    if response.status not in _COME_BACK or not stated:
        return None
    # Retry-After may also be a date.
    return float(stated) if stated.isdecimal() else 1.0


def _longest_silence_s(query: Query) -> float | None:
    """A watch ends by its own timeoutSeconds: a server that is silent for longer is gone."""
    stated = query.get("timeoutSeconds", "")
    return float(stated) + _WATCH_GRACE_S if stated.isdecimal() else None


def _notice_a_dead_peer(response: "aiohttp.ClientResponse") -> None:
    transport = response.connection.transport if response.connection else None
    plain = transport.get_extra_info("socket") if transport else None
    if plain is None:
        return
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
