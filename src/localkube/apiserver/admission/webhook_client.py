"""HTTPS to webhooks: their own certificates, a time limit, no redirects, answers of bounded size
and number of values. What is large is read in a thread (long_work.py), and nothing is decompressed:
half a megabyte may hold half a gigabyte.

NotReached    no usable answer came; says why in the words of Kubernetes' own client

aiohttp is imported at the first call: it takes as long to load as all the rest of the server, and
most clusters have no webhooks.
"""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import ClusterView
from localkube.apiserver.admission.webhook_config import Callee
from localkube.apiserver.admission.webhook_route import (
    Endpoint,
    FindNode,
    NoRoute,
    endpoints_of,
    relayed,
)
from localkube.apiserver.decode.json_text import BadJson, parse
from localkube.apiserver.decode.weight import MAX_VALUES, TooManyValues, is_long
from localkube.apiserver.http_library import http_library
from localkube.apiserver.long_work import LongWork
from localkube.node_streams import NodeRefusal

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER_BYTES = 3 * 1024 * 1024
# Twice what a client may send: a conversion gives a whole object back, and may add to it.
_MAX_VALUES = 2 * MAX_VALUES
_SHOWN_BYTES = 1024
_HEADERS = {
    "Accept": "application/json, */*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}


_T = TypeVar("_T")


class NotReached(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Destination:
    """`shown` is how texts name it. The connection goes to one of the endpoints, checked against
    `host`; without endpoints, to where the URL says."""

    shown: str
    host: str | None = None
    endpoints: tuple[Endpoint, ...] = ()


class WebhookClient:
    """`find_node`: by whom pods are reached; `long_work`: where large answers are read."""

    def __init__(self, find_node: FindNode, long_work: LongWork) -> None:
        self._find_node = find_node
        self._long_work = long_work
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, callee: Callee, document: Obj, cluster: ClusterView, read: Callable[[Any], _T]
    ) -> _T:
        """What `read` makes of the parsed answer. Raises what it raises, and NotReached."""
        shown, status, body = await self._answer(callee, document, cluster)
        if not is_long(body):
            return read(_parsed(status, body))
        # Webhooks take turns as users do: who answers with much waits for himself.
        return await self._long_work.done(f"webhook {shown}", lambda: read(_parsed(status, body)))

    async def _answer(
        self, callee: Callee, document: Obj, cluster: ClusterView
    ) -> tuple[str, int, bytes]:
        await http_library()
        import aiohttp

        to = _destination(callee, cluster, self._find_node)
        try:
            async with (
                asyncio.timeout(callee.timeout_s),
                _url(to) as url,
                self._opened().post(
                    url,
                    data=orjson.dumps(document),
                    headers=_HEADERS | ({"Host": urlsplit(to.shown).netloc} if to.host else {}),
                    ssl=_trust(callee.ca_pem),
                    # The connection goes to a loopback address, but the certificate names the
                    # service.
                    server_hostname=to.host,
                    allow_redirects=False,
                ) as response,
            ):
                body = await _read(response)
        except TimeoutError:
            raise NotReached(f'Post "{to.shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotReached(f'Post "{to.shown}": {_reason(error)}') from None
        return to.shown, response.status, body

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            # Requests hold whole objects, even Secrets: no proxy from the environment, and no
            # cookies. No limit of connections: one webhook that keeps its own would keep all.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
            )
        return self._session


def _destination(callee: Callee, cluster: ClusterView, find_node: FindNode) -> Destination:
    query = f"timeout={callee.timeout_s}s"
    if callee.service is None:
        parts = urlsplit(callee.url)
        if parts.scheme != "https" or not parts.hostname:
            raise NotReached(f"unsupported URL {callee.url}: only https is called")
        return Destination(f"https://{parts.netloc}{parts.path or '/'}?{query}")
    service = callee.service
    host = f"{service.name}.{service.namespace}.svc"
    shown = f"https://{host}:{service.port}{service.path}?{query}"
    try:
        endpoints = endpoints_of(service, cluster, find_node)
    except NoRoute as error:
        raise NotReached(f'Post "{shown}": {error}') from None
    return Destination(shown, host, tuple(endpoints))


@asynccontextmanager
async def _url(to: Destination) -> AsyncIterator[str]:
    """What to call while the context lasts: the first endpoint that is there."""
    if not to.endpoints:
        yield to.shown
        return
    async with AsyncExitStack() as relays:
        address = await _address(to, relays)
        yield urlsplit(to.shown)._replace(netloc=address).geturl()


async def _address(to: Destination, relays: AsyncExitStack) -> str:
    why = ""
    for endpoint in to.endpoints:
        if endpoint.dial is None:
            return endpoint.address
        try:
            return await relays.enter_async_context(relayed(endpoint.dial))
        except (NodeRefusal, OSError) as error:  # the next one may accept
            why = f"dial tcp {endpoint.address}: {error}"
    raise NotReached(f'Post "{to.shown}": {why}')


@lru_cache(maxsize=64)
def _trust(ca_pem: str) -> ssl.SSLContext:
    """Only the webhook's own authorities if it names any, those of the machine otherwise."""
    try:
        return ssl.create_default_context(cadata=ca_pem or None)
    except ssl.SSLError as error:
        raise NotReached(f"unable to load root certificates: {error.reason}") from None


async def _read(response: "aiohttp.ClientResponse") -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise NotReached(f"the answer is compressed ({encoding[:40]}), which was not asked for")
    body = bytearray()
    while len(body) <= MAX_ANSWER_BYTES:
        more = await response.content.read(MAX_ANSWER_BYTES + 1 - len(body))
        if not more:
            return bytes(body)
        body += more
    raise NotReached(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")


def _parsed(status: int, body: bytes) -> Any:
    text = body[:_SHOWN_BYTES].decode(errors="replace").strip()
    if status == 404:
        raise NotReached("the server could not find the requested resource")
    if status >= 500:
        raise NotReached(
            f'an error on the server ("{text}") has prevented the request from succeeding'
        )
    if not 200 <= status < 300:
        raise NotReached(text or f"the server answered with the status code {status}")
    try:
        return parse(body, _MAX_VALUES)
    except TooManyValues:
        raise NotReached(f"the answer has more than {_MAX_VALUES} values") from None
    except BadJson as error:
        raise NotReached(f"couldn't get version/kind; json parse error: {error}") from None


def _reason(error: Exception) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
        detail = getattr(inner, "verify_message", "") or str(inner)
        return f"tls: failed to verify certificate: x509: {detail}"
    if isinstance(error, aiohttp.ClientConnectorError):
        where = f"dial tcp {error.host}:{error.port}"
        if error.os_error.errno == errno.ECONNREFUSED:
            return f"{where}: connect: connection refused"
        return f"{where}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, UnicodeError):  # a name that no resolver can be asked for
        return "dial tcp: lookup: no such host"
    return str(error) or type(error).__name__
