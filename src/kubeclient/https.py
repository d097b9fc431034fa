"""The transport over HTTPS, with one pool of kept-alive connections.

An answer of 429 or 503 with Retry-After is retried here, within the time limit: the server
certainly did nothing. A connection that ends without a single byte of an answer is tried once more
where a second request can do no harm (`_may_ask_again`). Other failures are NoAnswer: the request
may have happened, so the caller must decide.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from urllib.parse import quote, urlencode, urlsplit

from kubeclient import __version__
from kubeclient.access import Access, NoAccess, tls_words
from kubeclient.client import Headers, Kube, Query, WebSocket
from kubeclient.dialing import (
    BadProxyUrl,
    BadUrl,
    CannotConnect,
    NotTrusted,
    ProxyRefuses,
    dial,
    route_of,
)
from kubeclient.errors import NoAnswer, refusal
from kubeclient.http1 import Answer, Connection, Disconnected
from kubeclient.pool import Pool

CALL_LIMIT_S = 30.0
_CONNECT_LIMIT_S = 10.0
_COME_BACK = (429, 503)
_MOST_TRIES = 10
_WATCH_GRACE_S = 30.0
_NOT_IN_A_HEADER = re.compile(r"[\r\n\0]")
_NOT_IN_A_PATH = re.compile(r"[^!-~]|#")
_AS_IT_IS = "/%:@!$&'()*+,;=~?[]"
# What OpenSSL says, by its version, of an answer that is no record of TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_LOOK = "look at HTTPS_PROXY, and at proxy-url in the kubeconfig"


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
        self._access = access
        self._agent = f"{agent}/{__version__}"
        self._limit_s = limit_s
        self._pool = Pool(self._dial)
        self._before_path = ""
        self._always = ""
        self._basic = ""

    async def close(self) -> None:
        self._pool.close()
        # What was aborted is told in the next turn of the loop, which may be its last one.
        await asyncio.sleep(0)

    async def call(
        self, method: str, path: str, *, query: Query, headers: Headers, body: bytes
    ) -> tuple[int, bytes]:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._limit_s
        with _failures(method, self._access.url, path):
            async with asyncio.timeout_at(deadline):
                for tries_left in reversed(range(_MOST_TRIES)):
                    head = await self._head(method, path, query, headers, body, gzip=True)
                    answer, found = await self._whole(method, head, body)
                    wait_s = _come_back_s(answer)
                    if wait_s is None or not tries_left or clock() + wait_s >= deadline:
                        break
                    await asyncio.sleep(wait_s)
        return answer.status, found

    async def stream(
        self, path: str, *, query: Query, headers: Headers
    ) -> AsyncGenerator[bytes, None]:
        silence_s = _longest_silence_s(query)
        with _failures("GET", self._access.url, path):
            head = await self._head("GET", path, query, headers, b"")
            connection, answer = await self._begun(head, silence_s)
            try:
                if answer.status >= 400:
                    async with asyncio.timeout(silence_s):
                        raise refusal(answer.status, await answer.whole())
                while True:
                    async with asyncio.timeout(silence_s):
                        chunk = await answer.next()
                    if not chunk:
                        return
                    yield chunk
            finally:
                self._pool.give_back(connection)

    @contextlib.asynccontextmanager
    async def websocket(
        self, path: str, *, query: Query, protocol: str
    ) -> AsyncIterator[WebSocket]:
        from kubeclient.websockets import opened  # loads aiohttp, and few programs need it

        async with contextlib.AsyncExitStack() as stack:
            with _failures("GET", self._access.url, path):
                socket = await stack.enter_async_context(
                    opened(self._access, self._agent, path, query=query, protocol=protocol)
                )
            yield socket

    async def _whole(self, method: str, head: bytes, body: bytes) -> tuple[Answer, bytes]:
        connection = await self._pool.take()
        try:
            answer = connection.ask(head, body)
            return answer, await answer.whole()
        except Disconnected:
            if not _may_ask_again(method, connection):
                raise
        finally:
            self._pool.give_back(connection)
        connection = await self._pool.take(new=True)
        try:
            answer = connection.ask(head, body)
            return answer, await answer.whole()
        finally:
            self._pool.give_back(connection)

    async def _begun(self, head: bytes, silence_s: float | None) -> tuple[Connection, Answer]:
        """A stream of which the status is known."""
        is_new = False
        while True:
            async with asyncio.timeout(_CONNECT_LIMIT_S):
                connection = await self._pool.take(new=is_new)
            try:
                answer = connection.ask(head, b"", is_stream=True)
                async with asyncio.timeout(silence_s):
                    await answer.head()
            except BaseException as error:
                self._pool.give_back(connection)
                if is_new or not isinstance(error, Disconnected):
                    raise
                is_new = True
            else:
                return connection, answer

    async def _dial(self) -> Connection:
        access = self._access
        return await dial(route_of(access), access.tls, access.server_name)

    async def _head(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Headers,
        body: bytes,
        *,
        gzip: bool = False,
    ) -> bytes:
        if not self._always:
            self._prepare()
        lines = [f"{method} {self._before_path}{_target(path, query)} HTTP/1.1{self._always}"]
        authorization = await self._access.authorization() or self._basic
        if authorization:
            lines.append(f"authorization: {authorization}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"accept-encoding: {'gzip' if gzip else 'identity'}")
        if body or method != "GET":
            lines.append(f"content-length: {len(body)}")
        for line in lines[1:]:
            if _NOT_IN_A_HEADER.search(line):
                raise ValueError(f"the header {line.partition(':')[0]} has more than one line")
        return "\r\n".join([*lines, "", ""]).encode()

    def _prepare(self) -> None:
        """What is the same in all requests. Raises BadUrl, BadProxyUrl."""
        route = route_of(self._access)
        lines = [f"host: {route.server.host_header}", f"user-agent: {self._agent}"]
        if route.target and route.proxy is not None and route.proxy.user:
            lines.append(f"proxy-authorization: {route.proxy.basic()}")
        self._basic = route.server.basic()
        self._before_path = route.target + urlsplit(self._access.url).path
        self._always = "".join(f"\r\n{line}" for line in lines)


def _target(path: str, query: Query) -> str:
    if _NOT_IN_A_PATH.search(path):
        path = quote(path, safe=_AS_IT_IS)
    if not query:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query, quote_via=quote)}"


def _may_ask_again(method: str, connection: Connection) -> bool:
    """A server closes idle connections, and a request may meet that: then no byte comes back, and
    nobody knows whether it was read. Twice read is twice the same for GET. PUT and DELETE are as
    well, for as long as the first was not answered; POST and PATCH are not."""
    return method == "GET" or (method in ("PUT", "DELETE") and connection.requests > 1)


@contextlib.contextmanager
def _failures(method: str, url: str, path: str) -> Iterator[None]:
    """Raise NoAnswer for every failure of the connection, and for missing credentials."""
    what = f"{method} {url}{path}"
    try:
        yield
    except TimeoutError:
        raise NoAnswer(f"{what}: no answer in time") from None
    except NotTrusted as error:
        cause, hint = tls_words(error.cause), _tls_hint(error.cause)
        words = f"no safe connection to {error.place} ({cause}); {hint}"
        raise NoAnswer(f"{what}: {words}") from error
    except Disconnected as error:
        words = "the server ended the connection without an answer; is its URL right"
        hint = ", or does it want https://?" if url.startswith("http://") else "?"
        raise NoAnswer(f"{what}: {words}{hint}") from error
    except CannotConnect as error:
        # In the words of the system, without those of a library.
        number = error.cause.errno or 0
        # An event loop that sees the end of a connection during the handshake has no number for it.
        cause = os.strerror(number) if number > 0 else error.cause.strerror or "it hung up"
        words = f"nothing answers at {error.place} ({cause}); does the cluster run?"
        if error.is_proxy:
            words = f"the proxy {error.place} does not answer ({cause}); {_LOOK}"
        raise NoAnswer(f"{what}: {words}") from error
    except ProxyRefuses as error:
        words = f"the proxy {error.place} refuses ({error.answer}); {_LOOK}"
        raise NoAnswer(f"{what}: {words}") from error
    except BadUrl as error:
        words = f'wanted a server like https://HOST:PORT in the kubeconfig, found "{url}"'
        raise NoAnswer(words) from error
    except BadProxyUrl as error:
        words = f'wanted a proxy like http://HOST:PORT, found "{error}"; {_LOOK}'
        raise NoAnswer(words) from error
    except (OSError, ValueError, NoAccess) as error:
        raise NoAnswer(f"{what}: {str(error) or type(error).__name__}") from error


def _tls_hint(cause: OSError) -> str:
    if getattr(cause, "reason", "") in _NOT_TLS:
        return "it does not speak TLS; is its port right, or does it want http://?"
    return "look at certificate-authority and tls-server-name of the cluster in the kubeconfig"


def _come_back_s(answer: Answer) -> float | None:
    """Seconds after which a busy server wants to be asked again; None: do not retry."""
    stated = answer.headers.get(b"retry-after", b"").decode("latin-1")
    if answer.status not in _COME_BACK or not stated:
        return None
    # Retry-After may also be a date.
    return float(stated) if stated.isdecimal() else 1.0


def _longest_silence_s(query: Query) -> float | None:
    """A watch ends by its own timeoutSeconds: a server that is silent for longer is gone."""
    stated = query.get("timeoutSeconds", "")
    return float(stated) + _WATCH_GRACE_S if stated.isdecimal() else None
