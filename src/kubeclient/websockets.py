"""WebSockets, by aiohttp. It is not loaded before the first one is opened."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import aiohttp

from kubeclient.access import Access
from kubeclient.client import Query, WebSocket
from kubeclient.dialing import CannotConnect, NotTrusted, ProxyRefuses, route_of
from kubeclient.errors import NoAnswer, refusal
from kubeclient.http1 import Disconnected

_CLOSE_LIMIT_S = 0.5  # until the other side confirms the end of a WebSocket


@contextlib.asynccontextmanager
async def opened(
    access: Access, agent: str, path: str, *, query: Query, protocol: str
) -> AsyncIterator[WebSocket]:
    """Raises Refused, and what `dial` raises."""
    what = f"GET {access.url}{path}"
    authorization = await access.authorization()
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=access.tls),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": agent},
        timeout=aiohttp.ClientTimeout(),
    ) as session:
        with _failures(access):
            try:
                socket = await session.ws_connect(
                    access.url + path,
                    params=query,
                    headers={"authorization": authorization} if authorization else {},
                    server_hostname=access.server_name or None,
                    proxy=access.proxy or None,
                    protocols=(protocol,),
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_LIMIT_S),
                )
            except aiohttp.WSServerHandshakeError as error:
                raise refusal(error.status, f"{what}: HTTP {error.status}".encode()) from error
        connection = socket._response.connection  # there is no public way to it
        transport = connection.transport if connection is not None else None
        try:
            async with socket:
                yield _WebSocket(socket, what)
        finally:
            # It is used for nothing else, and aiohttp would wait for the server's end of TLS in the
            # background, even after this client is closed. Python 3.11.2 (Debian 12) cannot abort
            # a connection that was closed twice.
            if transport is not None:
                with contextlib.suppress(AttributeError):
                    transport.abort()


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
        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.ERROR:
            raise NoAnswer(f"{self._what}: {message.data}")
        return message.data if message.type is aiohttp.WSMsgType.BINARY else None


@contextlib.contextmanager
def _failures(access: Access) -> Iterator[None]:
    """The library's errors as those of our own client."""
    route = route_of(access)
    try:
        yield
    except aiohttp.ClientSSLError as error:
        cause = error.__cause__
        raise NotTrusted(route.server, cause if isinstance(cause, OSError) else error) from error
    except aiohttp.ServerDisconnectedError as error:
        raise Disconnected(str(error)) from error
    except aiohttp.ClientProxyConnectionError as error:
        raise CannotConnect(route.proxy or route.server, error.os_error, is_proxy=True) from error
    except aiohttp.ClientConnectorError as error:
        raise CannotConnect(route.server, error.os_error, is_proxy=False) from error
    except aiohttp.ClientHttpProxyError as error:
        answer = f"{error.status} {error.message}"
        raise ProxyRefuses(route.proxy or route.server, answer) from error
    except aiohttp.ClientError as error:
        raise OSError(str(error)) from error
