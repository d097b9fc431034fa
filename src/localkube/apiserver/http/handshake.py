"""Whether a request asks for a WebSocket, and which subprotocol it gets (RFC 6455, section 4.2)."""

import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence

from wsproto.utilities import generate_accept_token

from localkube.apiserver.request import Request


def asks_for_websocket(request: Request) -> bool:
    headers = request.headers
    return (
        request.method == "GET"
        and headers.get("upgrade", "").lower() == "websocket"
        and "upgrade" in _listed(headers.get("connection", "").lower())
        and headers.get("sec-websocket-version") == "13"
        and _is_key(headers.get("sec-websocket-key", ""))
    )


def subprotocol(headers: Mapping[str, str], supported: Sequence[str]) -> str | None:
    """The first of the client's subprotocols that is supported; "" counts if it offers none."""
    offered = _listed(headers.get("sec-websocket-protocol", "")) or [""]
    return next((name for name in offered if name in supported), None)


def unsupported(headers: Mapping[str, str], supported: Sequence[str]) -> str:
    """The words of Kubernetes' WebSocket server."""
    offered = " ".join(_listed(headers.get("sec-websocket-protocol", "")))
    return f"requested protocol(s) are not supported: [{offered}]; supports [{' '.join(supported)}]"


def acceptance(headers: Mapping[str, str], chosen: str) -> bytes:
    """The whole head of the 101 answer."""
    token: bytes = generate_accept_token(headers["sec-websocket-key"].encode())
    line = f"Sec-WebSocket-Protocol: {chosen}\r\n" if chosen else ""
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"{line}Sec-WebSocket-Accept: {token.decode()}\r\n\r\n"
    ).encode()


def _listed(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]


def _is_key(key: str) -> bool:
    try:
        return len(b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False
