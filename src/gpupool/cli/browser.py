"""Whether a browser can be opened here, and how else to see a page. Pure."""

import getpass
import socket
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
_LOWEST_PORT = 1024  # a user may listen on from here on
_OTHER_PORT = 8080


def has_screen(platform: str, environ: Mapping[str, str]) -> bool:
    """Without one, as over SSH, xdg-open complains about each browser that it does not find."""
    if not platform.startswith("linux"):
        return not environ.get("SSH_CONNECTION")
    return any(environ.get(name) for name in _SCREENS)


def from_elsewhere(link: str, environ: Mapping[str, str]) -> str:
    """How somebody sees a page of this machine who sits at another one; empty: nobody does, or
    the link is no address of this machine's own."""
    host = urlsplit(link).hostname or ""
    is_local = _is_name(host) or host.startswith("127.")
    if not is_local or has_screen(sys.platform, environ):
        return ""
    return tunnel_words(link, _here(environ))


def tunnel_words(link: str, here: str) -> str:
    """`here`: this machine, as ssh names it."""
    parts = urlsplit(link)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    own = port if port >= _LOWEST_PORT else _OTHER_PORT
    host = parts.hostname or ""
    name, address = (host, "127.0.0.1") if _is_name(host) else ("localhost", host)
    seen = parts._replace(netloc=f"{name}:{own}").geturl()
    return (
        "There is no screen here. On the machine with your browser:\n"
        f"  ssh -N -L {own}:{address}:{port} {here}\n"
        f"Then open {seen} there."
    )


def _is_name(host: str) -> bool:
    """Of whichever machine the browser is on; ssh may not find it."""
    return host == "localhost" or host.endswith(".localhost")


def _here(environ: Mapping[str, str]) -> str:
    # Who came by SSH used the third word to find this machine.
    connection = environ.get("SSH_CONNECTION", "").split()
    machine = connection[2] if len(connection) == 4 else socket.gethostname()
    try:
        return f"{getpass.getuser()}@{machine}"
    except (KeyError, OSError):  # this user has no name
        return machine
