"""The head of an answer (status line and headers) as bytes, cheaply."""

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from itertools import count
from uuid import uuid4

from localkube.apiserver.request import Answer, Stream

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

# Ends of heads.
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CLOSE = b"Connection: close\r\n\r\n"

# Statuses whose answers have no body by definition.
BODILESS = frozenset({204, 304})

_CACHE_CONTROL = b"Cache-Control: no-cache, private\r\n"
# Audit ids are uuids; only the last group changes, a random uuid per request would cost 2.6 µs.
_AUDIT_ID = b"Audit-Id: " + str(uuid4())[:24].encode()
_audit_numbers = count(1)

# What would end a header early and start another one.
_LINE_BREAKS = dict.fromkeys((*range(0x20), 0x7F), " ")

# Of the texts of all Warning headers, and of each if all are longer than that.
_WARNINGS_LENGTH = 4096
_WARNING_LENGTH = 256

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


@lru_cache(maxsize=256)
def _opening(status: int, content_type: str) -> bytes:
    opening = f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}\r\n"
    if content_type and status not in BODILESS:
        opening += f"Content-Type: {content_type.translate(_LINE_BREAKS)}\r\n"
    return opening.encode()


def with_length(answer: Answer, length: int, warnings: Sequence[str]) -> bytes:
    """Without the empty line, so that the caller may add headers."""
    framing = b"" if answer.status in BODILESS else b"Content-Length: %d\r\n" % length
    return b"%b%b%b%b%012x\r\n%b" % (
        _opening(answer.status, answer.content_type),
        _others(answer.headers) if answer.headers else _CACHE_CONTROL,
        _warned(warnings) if warnings else b"",
        _AUDIT_ID,
        next(_audit_numbers),
        framing,
    )


def without_length(stream: Stream, warnings: Sequence[str]) -> bytes:
    """As `with_length`; the caller says how the body ends."""
    return b"%b%b%b%b%012x\r\n" % (
        _opening(stream.status, stream.content_type),
        _others(stream.headers) if stream.headers else _CACHE_CONTROL,
        _warned(warnings) if warnings else b"",
        _AUDIT_ID,
        next(_audit_numbers),
    )


def _others(headers: Sequence[tuple[str, str]]) -> bytes:
    lines = "".join(f"{name}: {value.translate(_LINE_BREAKS)}\r\n" for name, value in headers)
    own_caching = any(name.lower() == "cache-control" for name, _ in headers)
    return lines.encode() if own_caching else lines.encode() + _CACHE_CONTROL


def _warned(warnings: Sequence[str]) -> bytes:
    """As in Kubernetes: each text once, and 4096 characters of them in all. If they are more, each
    is shortened first, so that many can be shown. Clients refuse heads that are too long."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) > _WARNINGS_LENGTH:
        texts = [text[:_WARNING_LENGTH] for text in texts]
        texts = texts[: _WARNINGS_LENGTH // _WARNING_LENGTH]
    return "".join(f'Warning: 299 - "{_quoted(text)}"\r\n' for text in texts).encode()


def _quoted(text: str) -> str:
    return text.translate(_LINE_BREAKS).replace("\\", "\\\\").replace('"', '\\"')
