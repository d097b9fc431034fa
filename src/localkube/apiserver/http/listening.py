"""The sockets that a server listens on."""

import errno
import ipaddress
import socket
from collections.abc import Sequence

_LOOPBACK = ("127.0.0.1", "::1")
_BACKLOG = 512
# Another program may hold, on ::1, the port that we drew on 127.0.0.1.
_DRAWS = 16


class NotLoopback(Exception):
    """Asked to listen where other machines could connect."""


def listen(host: str, port: int, *, beyond_loopback: bool) -> list[socket.socket]:
    """Port 0 draws a free one. A loopback host means both loopback addresses on the same port."""
    addresses = _addresses(host)
    if not beyond_loopback and not all(ipaddress.ip_address(a).is_loopback for a in addresses):
        raise NotLoopback(f"{host} is not a loopback address")
    for draw in range(_DRAWS):
        try:
            return _bound(addresses, port)
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE or draw == _DRAWS - 1:
                raise
    raise AssertionError("unreachable: the last draw returns or raises")


def _addresses(host: str) -> Sequence[str]:
    if host == "localhost" or host in _LOOPBACK:
        return _LOOPBACK
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def _bound(addresses: Sequence[str], port: int) -> list[socket.socket]:
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            listener = _bind(address, port)
            if listener is not None:
                bound.append(listener)
                port = listener.getsockname()[1]
    except OSError:
        for listener in bound:
            listener.close()
        raise
    return bound


def _bind(address: str, port: int) -> socket.socket | None:
    """None where the machine has no IPv6 on its loopback; that is common in containers."""
    is_ipv6 = ":" in address
    try:
        listener = socket.socket(socket.AF_INET6 if is_ipv6 else socket.AF_INET)
        try:
            # A restarted server gets its port back while old connections are in TIME_WAIT.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if is_ipv6:
                # Else a socket on the IPv6 wildcard claims the IPv4 port as well, which has its own
                # listener.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.setblocking(False)
            listener.bind((address, port))
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        if address == "::1" and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        # The error of `bind` does not say which port.
        raise OSError(error.errno, error.strerror, f"port {port} of {address}") from None
    return listener
