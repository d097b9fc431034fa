"""What every request has to pass before anything else looks at it.

The console listens on the loopback interface. A page of the web could still reach it through the
visitor's browser: by a DNS name that points to 127.0.0.1 (DNS rebinding), so other names in Host
are refused; or by sending a form (CSRF) or opening a WebSocket, so whatever changes something, and
every WebSocket, has to come from a page of the console itself. Cookies do not tell ports apart: a
notebook on another port of this machine is the same site to a browser. Its Origin is another one.

Names that end with .localhost are this machine in every browser, and no DNS server may have them
(RFC 6761). One that nobody can guess keeps the console's cookies from all other servers here.
"""

from aiohttp import web

_HOSTS = ("127.0.0.1", "localhost")  # on any port: kubectl port-forward uses another one
_NAMES = ".localhost"
_READS = ("GET", "HEAD")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not "no-referrer": browsers would send forms with the Origin "null", which is refused below.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def refusal(request: web.Request) -> str:
    """Why the request is refused; empty: it may go on."""
    host = request.url.host or ""
    if host not in _HOSTS and not host.endswith(_NAMES):
        return f'This console does not answer as "{request.host}".'
    # A WebSocket begins as a GET, and any page of the web may open one: browsers ask nobody.
    is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
    if request.method in _READS and not is_socket:
        return ""
    origin = request.headers.get("Origin", "")
    if origin != f"http://{request.host}":
        return f'Changes have to come from a page of this console, not from "{origin}".'
    return ""
