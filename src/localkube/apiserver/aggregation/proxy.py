"""Forwards requests to the API server behind a service, under the identity of whoever asked.

That server knows this one by the front-proxy certificate, and takes from it who the user is: the
headers X-Remote-User, -Uid, -Group and -Extra-. What a client sends of these is thrown away, and
its own credentials are not passed on.

aiohttp is imported at the first request, as for webhooks.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from localkube.apiserver import status
from localkube.apiserver.admission.attributes import ClusterView
from localkube.apiserver.admission.webhook_route import (
    Endpoint,
    FindNode,
    NoRoute,
    endpoints_of,
    relayed,
)
from localkube.apiserver.aggregation.registry import Remote
from localkube.apiserver.http_library import http_library
from localkube.apiserver.request import Answer, Reply, Request, Stream, User
from localkube.apiserver.security.certificates import Certificates
from localkube.apiserver.security.impersonation import HEADER_PREFIX
from localkube.node_streams import NodeRefusal

if TYPE_CHECKING:
    import aiohttp

_HELD_BYTES = 1024 * 1024  # of an answer. What is larger is passed on as it comes
_LONGEST_S = 60.0
_REMOTE = "x-remote-"
_OF_ONE_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect"),
    }
)
_OWN = _OF_ONE_CONNECTION | {"authorization", "cookie"}
# What says something about the answer itself.
_PASSED_BACK = frozenset(
    {
        *("cache-control", "content-encoding", "etag", "last-modified", "vary", "warning"),
        *("retry-after", "location", "audit-id"),
    }
)
# Letters that a header's name may have.
_NAME = "!#$&'*+-.^_`|~"


class NotReached(Exception):
    """No answer came; says why."""


@dataclass(frozen=True, slots=True)
class Forwarder:
    cluster: ClusterView
    find_node: FindNode
    certificates: Certificates

    async def forward(self, request: Request, user: User, remote: Remote) -> Reply:
        """The answer of the other server, whatever it is; 503 if there is none."""
        if "upgrade" in request.headers:
            raise status.failure(
                501,
                "NotImplemented",
                f"{remote.path}: connections cannot be upgraded on the way to service "
                f"{remote.service.namespace}/{remote.service.name}; connect to it directly",
            )
        if not remote.is_available:
            return _unavailable("service unavailable")
        opened = AsyncExitStack()
        try:
            response = await opened.enter_async_context(self.asked(request, user, remote))
            if request.flag("watch") or f"{remote.path}/watch/" in request.path:
                return _streamed(response, b"", None, opened.pop_all())
            deadline_s = asyncio.get_running_loop().time() + _LONGEST_S
            async with asyncio.timeout_at(deadline_s):
                body = await _begun(response)
            if len(body) > _HELD_BYTES:
                return _streamed(response, body, deadline_s, opened.pop_all())
            headers = tuple(_passed_back(response))
            return Answer(response.status, body, _content_type(response), headers)
        except TimeoutError:
            return _unavailable(f"service {remote.host} does not answer")
        except NotReached as error:
            return _unavailable(str(error))
        finally:
            await opened.aclose()

    @asynccontextmanager
    async def asked(
        self, request: Request, user: User, remote: Remote
    ) -> AsyncIterator["aiohttp.ClientResponse"]:
        """Raises NotReached, TimeoutError."""
        await http_library()
        import aiohttp
        from multidict import CIMultiDict
        from yarl import URL

        try:
            endpoints = endpoints_of(remote.service, self.cluster, self.find_node)
        except NoRoute as error:
            raise NotReached(str(error)) from None
        headers = CIMultiDict([*_headers(request, user), ("Host", remote.host)])
        where = f"{request.path}?{request.query_string}".rstrip("?")
        async with AsyncExitStack() as opened:
            address = await _address(endpoints, opened)
            # Made for one request: each has a way of its own to the pod.
            session = await opened.enter_async_context(
                aiohttp.ClientSession(
                    cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
                )
            )
            try:
                async with asyncio.timeout(_LONGEST_S):
                    response = await opened.enter_async_context(
                        session.request(
                            request.method,
                            URL(f"https://{address}{where}", encoded=True),
                            data=request.body or None,
                            headers=headers,
                            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
                            ssl=_trust(remote.ca_pem, remote.is_checked, self.certificates),
                            server_hostname=remote.host,
                            allow_redirects=False,
                            timeout=aiohttp.ClientTimeout(total=None),
                        )
                    )
            # ValueError: a name of a user with a line feed in it cannot be a header.
            except (aiohttp.ClientError, OSError, ValueError) as error:
                if isinstance(error, TimeoutError):
                    raise
                raise NotReached(str(error) or type(error).__name__) from None
            yield response


async def _address(endpoints: list[Endpoint], opened: AsyncExitStack) -> str:
    why = ""
    for endpoint in endpoints:
        if endpoint.dial is None:
            return endpoint.address
        try:
            return await opened.enter_async_context(relayed(endpoint.dial))
        except (NodeRefusal, OSError) as error:  # the next one may accept
            why = f"dial tcp {endpoint.address}: {error}"
    raise NotReached(why)


def _headers(request: Request, user: User) -> Iterator[tuple[str, str]]:
    for name, value in request.headers.items():
        if name not in _OWN and not name.startswith((_REMOTE, HEADER_PREFIX)):
            yield name, value
    yield "X-Remote-User", user.name
    if user.uid:
        yield "X-Remote-Uid", user.uid
    for group in user.groups:
        yield "X-Remote-Group", group
    for key, values in user.extra.items():
        for each in values:
            yield f"X-Remote-Extra-{quote(key, safe=_NAME)}", each


async def _begun(response: "aiohttp.ClientResponse") -> bytes:
    """The whole body, or a little more than is held. Raises NotReached."""
    import aiohttp

    body = bytearray()
    try:
        while len(body) <= _HELD_BYTES and (chunk := await response.content.read(65536)):
            body += chunk
    except (aiohttp.ClientError, OSError) as error:
        raise NotReached(str(error) or type(error).__name__) from None
    return bytes(body)


def _streamed(
    response: "aiohttp.ClientResponse",
    begun: bytes,
    deadline_s: float | None,
    opened: AsyncExitStack,
) -> Stream:
    """What has been read, and the rest as it comes; without a deadline for a watch."""
    import aiohttp

    async def chunks() -> AsyncIterator[bytes]:
        async with opened:
            yield begun
            try:
                while chunk := await _next(response, deadline_s):
                    yield chunk
            except (aiohttp.ClientError, OSError) as error:
                # The client's connection breaks, too: it must not take a part for the whole.
                raise ConnectionResetError(str(error) or type(error).__name__) from None

    headers = tuple(_passed_back(response))
    return Stream(chunks(), response.status, _content_type(response), headers)


async def _next(response: "aiohttp.ClientResponse", deadline_s: float | None) -> bytes:
    """Raises TimeoutError, which is an OSError."""
    async with asyncio.timeout_at(deadline_s):
        return await response.content.readany()


def _content_type(response: "aiohttp.ClientResponse") -> str:
    return response.headers.get("Content-Type", "application/octet-stream")


def _passed_back(response: "aiohttp.ClientResponse") -> Iterator[tuple[str, str]]:
    for name, value in response.headers.items():
        if name.lower() in _PASSED_BACK:
            yield name, value


def _unavailable(why: str) -> Answer:
    return Answer(503, f"{why}\n".encode(), "text/plain; charset=utf-8")


@lru_cache(maxsize=64)
def _trust(ca_pem: str, is_checked: bool, certificates: Certificates) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=ca_pem or None)
    except ssl.SSLError as error:
        raise NotReached(f"unable to load root certificates: {error.reason}") from None
    if not is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(certificates.front_proxy_certificate, certificates.front_proxy_key)
    return context
