"""Refuses requests that a web page of another origin makes a browser send (DNS rebinding, CSRF).

A page can point its own name at 127.0.0.1 (DNS rebinding): then the Host header is foreign. Or it
can simply call 127.0.0.1: then the browser says so in an Origin header. Python's WebSocket clients
send one too, with the server's own address: that may pass, as no page comes from here. No answer
ever carries a CORS header.
"""

import ipaddress
import re
from functools import lru_cache

from localkube.apiserver.request import Answer, Request
from localkube.apiserver.security.certificates import ALWAYS_NAMED
from localkube.apiserver.status import failure

_HOST = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]{1,5})?")
_ALWAYS = frozenset(ALWAYS_NAMED)


def refuse_foreign(
    request: Request,
    allowed_hosts: frozenset[str],
    allowed_origins: frozenset[str] = frozenset(),
) -> Answer | None:
    """The refusal; None if the request may go on. `allowed_hosts`: further names, in lower case."""
    headers = request.headers
    if not _is_ours(headers.get("host", ""), allowed_hosts):
        message = "the Host header names another server: use 127.0.0.1 or localhost"
        return failure(421, "", message).answer()
    origin = headers.get("origin")
    own = f"https://{headers.get('host', '')}"
    if origin is not None and origin != own and origin not in allowed_origins:
        message = "requests from web pages are not allowed"
        return failure(403, "Forbidden", message).answer()
    return None


@lru_cache(maxsize=256)
def _is_ours(header: str, allowed_hosts: frozenset[str]) -> bool:
    host = _host(header)
    if host in _ALWAYS or host in allowed_hosts:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(header: str) -> str:
    """Without the port, the brackets of an IPv6 address and the last dot of a full name."""
    found = _HOST.fullmatch(header)
    return (found["address"] or found["name"]).lower().removesuffix(".") if found else ""
