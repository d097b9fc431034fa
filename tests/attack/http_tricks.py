"""Requests that two programs could read in two ways, and pieces to make more of them."""

import random

from tests.faults.api_child import TOKEN

# Asked for by whoever reads a request otherwise than we do. Nobody may ask for it without a token,
# and its answer is easily told.
HIDDEN = f"GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
_LENGTH = len(HIDDEN)


def _post(*headers: str, body: str = "") -> str:
    head = "\r\n".join(("POST /api/v1/namespaces HTTP/1.1", "Host: localhost", *headers))
    return f"{head}\r\n\r\n{body}"


_CHUNKED = "Transfer-Encoding: chunked"
_ENDED = "0\r\n\r\n" + HIDDEN

# Each must be refused as a whole, and the connection ended.
AMBIGUOUS: dict[str, str] = {
    "length and chunks": _post(f"Content-Length: {5 + _LENGTH}", _CHUNKED, body=_ENDED),
    "chunks and length": _post(_CHUNKED, f"Content-Length: {5 + _LENGTH}", body=_ENDED),
    "two lengths": _post("Content-Length: 0", f"Content-Length: {_LENGTH}", body=HIDDEN),
    "two lengths in one": _post(f"Content-Length: 0, {_LENGTH}", body=HIDDEN),
    "the same length twice": _post("Content-Length: 5", "Content-Length: 5", body="hello" + HIDDEN),
    "a negative length": _post("Content-Length: -1", body=HIDDEN),
    "a length with a sign": _post(f"Content-Length: +{_LENGTH}", body=HIDDEN),
    "a hexadecimal length": _post("Content-Length: 0x0", body=HIDDEN),
    "a length with an underscore": _post("Content-Length: 0_0", body=HIDDEN),
    "an endless length": _post("Content-Length: " + "9" * 40, body=HIDDEN),
    "a length of nothing": _post("Content-Length: ", body=HIDDEN),
    "an unknown coding": _post("Transfer-Encoding: xchunked", body=_ENDED),
    "two codings": _post("Transfer-Encoding: gzip, chunked", body=_ENDED),
    "chunks twice": _post("Transfer-Encoding: chunked, chunked", body=_ENDED),
    "chunks, then none": _post(_CHUNKED, "Transfer-Encoding: identity", body=_ENDED),
    "a space before the colon": _post("Transfer-Encoding : chunked", body=_ENDED),
    "a folded header": _post("Transfer-Encoding:\r\n chunked", body=_ENDED),
    "a folded first header": _post(" X: y", body=HIDDEN),
    "a vertical tab": _post("Transfer-Encoding:\x0bchunked", body=_ENDED),
    "a NUL": _post("Transfer-Encoding: chunked\x00", body=_ENDED),
    "a bare line feed": _post("X: y\nTransfer-Encoding: chunked", body=_ENDED),
    "a bare carriage return": _post("X: y\rTransfer-Encoding: chunked", body=_ENDED),
    "no colon": _post("Transfer-Encoding chunked", body=_ENDED),
    "no name": _post(": chunked", body=_ENDED),
    "a negative chunk": _post(_CHUNKED, body="-1\r\n" + HIDDEN),
    "a chunk with a sign": _post(_CHUNKED, body="+0\r\n\r\n" + HIDDEN),
    "a hexadecimal chunk": _post(_CHUNKED, body="0x0\r\n\r\n" + HIDDEN),
    "an endless chunk": _post(_CHUNKED, body="f" * 40 + "\r\n" + HIDDEN),
    "a chunk that overflows": _post(_CHUNKED, body="10000000000000000\r\n" + HIDDEN),
    "a chunk with a bare line feed": _post(_CHUNKED, body="0\n\n" + HIDDEN),
    "a chunk without an end": _post(_CHUNKED, body="5\r\nhelloGET" + HIDDEN),
    "a length in the trailer": _post(_CHUNKED, body="0\r\nContent-Length: 5\r\n\r\n" + HIDDEN),
    "HTTP/1.0 with chunks": _post(_CHUNKED, body=_ENDED).replace("HTTP/1.1", "HTTP/1.0", 1),
    "HTTP/0.9": "GET /version\r\n\r\n" + HIDDEN,
    "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN,
    "HTTP/1.1 in small letters": _post("X: y", body=HIDDEN).replace("HTTP/1.1", "http/1.1", 1),
    "two hosts": _post("Host: other", "Content-Length: 0", body=HIDDEN),
    "no host": "GET /version HTTP/1.1\r\n\r\n" + HIDDEN,
    "a space in the path": "GET /version /x HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    "an unknown method": "GETS /version HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    "CONNECT": "CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    "too many headers": _post(*(f"X-{n}: y" for n in range(500)), body=HIDDEN),
    "too large a header": _post("X: " + "y" * 100_000, body=HIDDEN),
    "too large a name": _post("X" * 100_000 + ": y", body=HIDDEN),
    "too long a path": f"GET /{'x' * 100_000} HTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
    "an unknown expectation": _post("Content-Length: 5", "Expect: x", body="hello" + HIDDEN),
}

# The trailer and the extension of a chunk mean nothing, however they look.
HARMLESS: dict[str, str] = {
    "a chunk with extensions": _post(_CHUNKED, body='2;a=b;c="d"\r\n{}\r\n0;x\r\n\r\n'),
    "a trailer that claims things": _post(
        _CHUNKED,
        body=f"2\r\n{{}}\r\n0\r\nAuthorization: Bearer {TOKEN}\r\nHost: x\r\n\r\n",
    ),
    "zeros before a chunk's size": _post(_CHUNKED, body="0000000002\r\n{}\r\n000\r\n\r\n"),
    "capitals": _post("TRANSFER-ENCODING: CHUNKED", body="2\r\n{}\r\n0\r\n\r\n"),
    "an expectation": _post("Content-Length: 2", "Expect: 100-continue", body="{}"),
}

_PIECES = (
    *("GET ", "POST ", "PATCH ", "/version", "/readyz", "/api/v1/namespaces", "?a=b", "%00", "#"),
    *(
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        "Host: localhost\r\n",
        f"Authorization: Bearer {TOKEN}\r\n",
    ),
    *(
        "Content-Length: 2\r\n",
        "Content-Length: 99\r\n",
        f"{_CHUNKED}\r\n",
        "Connection: close\r\n",
    ),
    *("Connection: Upgrade\r\nUpgrade: websocket\r\n", "Expect: 100-continue\r\n", "\r\n", "\r\n"),
    *(
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n",
        "Upgrade: h2c\r\n",
        "\n",
        "\x00",
        "\xff",
        ":",
    ),
    *("{}", "2\r\n{}\r\n", "0\r\n\r\n", "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", HIDDEN),
    *(
        "Content-Type: application/json\r\n",
        "Accept: */*\r\n",
        "X: " + "y" * 5000 + "\r\n",
        " ",
        "\t",
    ),
)


def almost_http(draw: random.Random) -> bytes:
    """Pieces of requests in any order; more often than not, the beginning is right."""
    made = "".join(draw.choices(_PIECES, k=draw.randrange(1, 25)))
    if draw.random() < 0.7:
        made = f"{draw.choice(('GET', 'POST'))} /version HTTP/1.1\r\nHost: localhost\r\n{made}"
    return made.encode("latin-1")
