"""HTTPS to webhooks: their own certificates, a time limit, no redirects, answers of bounded size.

NotReached    no usable answer came; says why in the words of Kubernetes' own client

aiohttp is imported at the first call: it takes as long to load as all the rest of the server, and
most clusters have no webhooks.
"""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
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
from localkube.node_streams import NodeRefusal

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER_BYTES = 3 * 1024 * 1024
_SHOWN_BYTES = 1024
_HEADERS = {
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}


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
    """`find_node`: by whom pods are reached."""

    def __init__(self, find_node: FindNode) -> None:
        self._find_node = find_node
        self._session: aiohttp.ClientSession | None = None

    async def post(self, callee: Callee, document: Obj, cluster: ClusterView) -> Any:
        """The parsed answer. Raises NotReached."""
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
        except (aiohttp.ClientError, OSError) as error:
            raise NotReached(f'Post "{to.shown}": {_reason(error)}') from None
        return _parsed(response.status, body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            # Requests hold whole objects, even Secrets: no proxy from the environment, and no
            # cookies.
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
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
    body = await response.content.read(MAX_ANSWER_BYTES + 1)
    while len(body) <= MAX_ANSWER_BYTES:
        more = await response.content.read(MAX_ANSWER_BYTES + 1 - len(body))
        if not more:
            return body
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
        return orjson.loads(body)
    except ValueError as error:
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
    return str(error) or type(error).__name__
