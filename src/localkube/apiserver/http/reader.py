"""Bytes in, whole requests out: HTTP/1.1 by llhttp, with limits.

llhttp is strict as it comes: it refuses bare line feeds, folded headers, bad chunk sizes, and a
Content-Length beside a Transfer-Encoding. What it leaves to us: sizes, the Host header, HTTP
versions, and any coding but `chunked`.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import httptools

from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.request import Request
from localkube.apiserver.status import (
    ApiError,
    bad_request,
    failure,
    too_large,
    too_many_requests,
)

# Bytes of head and framing (chunk sizes, extensions, trailers) that a request may have for nothing,
# and per byte of body: the smallest chunk takes five.
_SPARE_FRAMING = 256 * 1024
_FRAMING_PER_BYTE = 8


class Received(NamedTuple):
    """A request and how its answer must go out."""

    request: Request
    keep_alive: bool
    is_http10: bool  # knows no chunks: a stream ends with the connection


class BodyBudget:
    """Guards what unfinished bodies of all connections take together.

    They are held before we know whose they are; without this a crowd of slow writers could take
    the limit of one body times the limit of connections.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.held = 0
        self._limit = limit_bytes

    def change(self, before: int, after: int) -> None:
        """Raises ApiError when there is no room; what is refused counts until it is released."""
        self.held += after - before
        if after > before and self.held > self._limit:
            raise too_many_requests("too many large requests are under way")


class RequestReader:
    """Feeds the parser; whole requests wait in `received`.

    `feed` raises ApiError for what is refused; nothing can be read after that. After a request that
    asks to change the protocol, `unread` is what follows it, and nothing is read either.
    """

    def __init__(
        self, limits: WireLimits, budget: BodyBudget, *, expects_continue: Callable[[], None]
    ) -> None:
        self.received: deque[Received] = deque()
        self.unread: bytes | None = None
        self.is_mid_head = False
        self.is_mid_body = False
        self._limits = limits
        self._budget = budget
        self._held = 0
        self._expects_continue = expects_continue
        self._parser = httptools.HttpRequestParser(self)
        self._reset()

    def _reset(self) -> None:
        self.is_mid_head = False
        self.is_mid_body = False
        self._url = b""
        self._lines: list[bytes] = []  # names and values in turn, as they came
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._pending_bytes = 0

    def feed(self, data: bytes) -> None:
        complete_before = len(self.received)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.unread = data[upgrade.args[0] :]
            return
        except httptools.HttpParserError as error:
            refusal = error.__context__  # what a callback below has raised
            if isinstance(refusal, ApiError):
                raise refusal from None
            raise bad_request(f"malformed HTTP request: {error}") from refusal
        # What the parser holds back of an unfinished request. A read that ended one request and
        # began another is not counted: it is small.
        if (self.is_mid_head or self.is_mid_body) and len(self.received) == complete_before:
            self._pending_bytes += len(data)
            self._limit_pending()
        if self._held or self.is_mid_body:
            self._hold(self._body_bytes if self.is_mid_body else 0)

    def _hold(self, size: int) -> None:
        before, self._held = self._held, size
        self._budget.change(before, size)

    def release(self) -> None:
        """After a refusal: let go of what has been read of the request."""
        self._hold(0)
        self._reset()

    def stop(self) -> None:
        self.received.clear()
        self.release()
        # The parser and we, and the connection and we, would keep each other alive.
        self._parser = None
        self._expects_continue = _nobody

    def _limit_pending(self) -> None:
        if self.is_mid_head:
            if self._pending_bytes > self._limits.url_bytes + self._limits.header_bytes:
                raise _headers_too_large(self._limits)
        elif self._pending_bytes > _SPARE_FRAMING + _FRAMING_PER_BYTE * self._body_bytes:
            raise bad_request("malformed HTTP request: too much framing for so little body")

    # Called by the parser.

    def on_url(self, part: bytes) -> None:
        self.is_mid_head = True
        self._url += part
        if len(self._url) > self._limits.url_bytes:
            most = self._limits.url_bytes
            raise _refused(414, f"the URL of the request is longer than {most} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += (name, value)

    def on_headers_complete(self) -> None:
        self.is_mid_head = False
        self.is_mid_body = True
        # Taken here: trailers come the same way, and must not become headers after the checks.
        headers = self._headers = _checked(self._lines, self._limits)
        version = self._parser.get_http_version()
        if version != "1.1":
            if version != "1.0":
                raise _refused(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
            if "transfer-encoding" in headers:
                raise bad_request("malformed HTTP request: HTTP/1.0 has no Transfer-Encoding")
        elif "host" not in headers:
            raise bad_request("malformed HTTP request: missing required Host header")
        self._is_http10 = version == "1.0"
        self._keep_alive: bool = self._parser.should_keep_alive() and not self._is_http10
        if "content-length" in headers or "transfer-encoding" in headers:
            self._announce_body(headers)

    def _announce_body(self, headers: dict[str, str]) -> None:
        if headers.get("transfer-encoding", "chunked").lower() != "chunked":
            raise _refused(501, "the only Transfer-Encoding understood is chunked")
        # llhttp has checked that it is a number of at most 64 bits.
        if int(headers.get("content-length", 0)) > self._limits.body_bytes:
            raise too_large(self._limits.body_bytes)
        expectation = headers.get("expect")
        if expectation is not None:
            if expectation.lower() != "100-continue":
                text = f"Expect: {expectation} is not understood, only 100-continue is"
                raise _refused(417, text)
            self._expects_continue()

    def on_body(self, part: bytes) -> None:
        self._body_bytes += len(part)
        if self._body_bytes > self._limits.body_bytes:
            raise too_large(self._limits.body_bytes)
        self._body.append(part)

    def on_message_complete(self) -> None:
        path, _, query = self._url.decode("ascii", "replace").partition("?")
        if not path.startswith("/"):
            raise bad_request("malformed HTTP request: the URL must begin with a slash")
        body = self._body
        request = Request(
            self._parser.get_method().decode("ascii"),
            path,
            query,
            self._headers,
            body[0] if len(body) == 1 else b"".join(body),
        )
        # After a request to change the protocol the parser reads no further request.
        keep_alive = self._keep_alive and not self._parser.should_upgrade()
        self.received.append(Received(request, keep_alive, self._is_http10))
        self._reset()


def _nobody() -> None:
    """Takes the place of a callback into a connection that has ended."""


def _checked(lines: list[bytes], limits: WireLimits) -> dict[str, str]:
    # Decoded all at once, which is twice as fast as one by one. The parser lets no line feed into
    # a name or a value.
    names, values = b"\n".join(lines[::2]), b"\n".join(lines[1::2])
    count = len(lines) // 2
    if count > limits.headers or len(names) + len(values) > limits.header_bytes:
        raise _headers_too_large(limits)
    keys = names.decode("latin-1").lower().split("\n")
    texts = values.decode("latin-1").split("\n")
    headers = dict(zip(keys, texts, strict=True))
    return headers if len(headers) == count else _merged(keys, texts)


def _merged(keys: list[str], texts: list[str]) -> dict[str, str]:
    """Repeated headers are one list (RFC 9110, section 5.3)."""
    headers: dict[str, str] = {}
    for key, text in zip(keys, texts, strict=True):
        if key == "host" and key in headers:
            raise bad_request("malformed HTTP request: more than one Host header")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _headers_too_large(limits: WireLimits) -> ApiError:
    most = f"{limits.headers} headers of {limits.header_bytes} bytes together"
    return _refused(431, f"the request has more than {most}")


def _refused(code: int, text: str) -> ApiError:
    """Kubernetes has no reasons for what its HTTP library refuses. Clients show them before the
    message: they are the names of the codes."""
    return failure(code, _REASONS[code], text)


_REASONS = {
    414: "URITooLong",
    417: "ExpectationFailed",
    431: "RequestHeaderFieldsTooLarge",
    501: "NotImplemented",
    505: "HTTPVersionNotSupported",
}
