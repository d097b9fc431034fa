"""gRPC's part of a call on HTTP/2: messages with their length in front, and how a call ended. Pure.

A message has five bytes in front of it: whether it is compressed, and its length. Errors and their
words are in the trailers grpc-status and grpc-message.
"""

import itertools
import struct
from collections.abc import Iterable
from urllib.parse import quote, unquote

from kubeclient.kubeletapi.errors import RpcFailed

Headers = list[tuple[str, str]]

_PREFIX = struct.Struct(">BI")
# By number, in Go's spelling.
CODES = (
    *("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound"),
    *("AlreadyExists", "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted"),
    *("OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"),
)
# Bytes as they are sent, where a letter may have twelve. gRPC refuses some trailers above 8 KiB,
# and all above 16 KiB.
_LONGEST_WORDS = 7 * 1024
# Printable ASCII stands for itself; the percent sign does not.
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def framed(message: bytes) -> bytes:
    return _PREFIX.pack(0, len(message)) + message


class Messages:
    """Cuts what arrives into messages."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()

    @property
    def is_between(self) -> bool:
        """Nothing of a further message has arrived."""
        return not self._rest

    def add(self, data: bytes) -> Iterable[bytes]:
        """Those that are complete now. Raises RpcFailed."""
        self._rest += data
        while len(self._rest) >= _PREFIX.size:
            compressed, size = _PREFIX.unpack_from(self._rest)
            if compressed:
                raise RpcFailed("Unimplemented", "the message is compressed")
            if size > self._most_bytes:
                words = f"a message of {size} bytes; {self._most_bytes} may be sent"
                raise RpcFailed("ResourceExhausted", words)
            end = _PREFIX.size + size
            if len(self._rest) < end:
                return
            message = bytes(self._rest[_PREFIX.size : end])
            del self._rest[:end]
            yield message


def ending(code: str, words: str = "") -> Headers:
    """The trailers of a call that has ended so."""
    headers = [("grpc-status", str(CODES.index(code)))]
    return [*headers, ("grpc-message", _quoted(words))] if words else headers


def _quoted(words: str) -> str:
    """As many letters as may be sent."""
    # Half a surrogate pair has no bytes.
    letters = [quote(each, _PLAIN, errors="replace") for each in words[:_LONGEST_WORDS]]
    ends = itertools.accumulate(map(len, letters))
    return "".join(letters[: sum(end <= _LONGEST_WORDS for end in ends)])


def failure(headers: Headers) -> RpcFailed | None:
    """How the call has failed, by its trailers; None: it has not."""
    found = dict(headers)
    status = found.get("grpc-status", "")
    if not status:
        said = found.get(":status", "no status")
        return RpcFailed("Unavailable", f"the answer has no grpc-status (HTTP: {said})")
    if status == "0":
        return None
    is_known = status.isdecimal() and len(status) < 3 and int(status) < len(CODES)
    return RpcFailed(CODES[int(status)] if is_known else "Unknown", _words(found))


def _words(found: dict[str, str]) -> str:
    return unquote(found.get("grpc-message", ""), errors="replace")
