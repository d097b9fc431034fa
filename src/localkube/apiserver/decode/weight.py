"""How much work a body makes, told from its bytes before anything is parsed.

What a request costs grows with the number of its values, not with its bytes: three megabytes of
text in one ConfigMap are parsed in milliseconds, three megabytes of `{}` are a million objects that
are checked, completed and compared one by one.
"""

from collections.abc import Iterator
from itertools import accumulate

import orjson

# In one body. The largest CRDs in use have about sixty thousand.
MAX_VALUES = 100_000
# Bodies below have so few values that all checks of them together take some milliseconds.
_SHORT_BYTES = 2048
_SHORT_VALUES = 600
# Without counting: even what is fast for each byte takes its time.
_LONG_BYTES = 32 * 1024
_SLICE = 64 * 1024
_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {byte: 1 if byte in b"[{" else -1 for byte in b"[]{}"}


class TooManyValues(Exception):
    """The body has more than MAX_VALUES."""


def is_long(body: bytes, media: str = "") -> bool:
    """Whether the body is worked on aside, so that nobody else waits for it."""
    size = len(body)
    if size <= _SHORT_BYTES:
        return False
    if size > _LONG_BYTES or "protobuf" in media:
        return True
    if body[:1] not in (b"{", b"["):  # YAML, whose values stand between line ends and blanks
        return True
    return most_values(body) > _SHORT_VALUES


def refuse_too_many(body: bytes, most: int = MAX_VALUES) -> None:
    """Of JSON. Raises TooManyValues."""
    if len(body) > most and most_values(body) > most:
        found = 0
        for part in without_strings(body):
            found += most_values(part)
            if found > most:
                raise TooManyValues


def is_deep(body: bytes, limit: int) -> bool:
    """Of JSON that is valid: whether lists and objects lie in one another more than `limit`."""
    if body.count(b"{") + body.count(b"[") <= limit:
        return False
    depth = 0
    for part in without_strings(body):
        steps = list(accumulate(map(_STEPS.__getitem__, part.translate(None, _BRACKETS))))
        if steps:
            if depth + max(steps) > limit:
                return True
            depth += steps[-1]
    return False


def without_strings(body: bytes) -> Iterator[bytes]:
    """JSON without its strings, in slices: one search in all of it would stop every thread. A
    string that never ends takes all that follows with it.

    By hand: patterns that do not backtrack (`*+`) find the wrong places in Python 3.11.2."""
    place, inside = 0, 0
    while place < len(body):
        part = body[place : place + _SLICE]
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # what it escapes belongs to it
            part = body[place : place + len(part) + 1]
        place += len(part)
        pieces = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(pieces[inside::2])  # every other piece is the inside of a string
        inside ^= (len(pieces) - 1) % 2


def most_values(text: bytes) -> int:
    """At least as many as there are values."""
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def at_most(value: object, limit: int) -> bool:
    """Of what was parsed: whether it surely has no more values than that."""
    return most_values(orjson.dumps(value)) <= limit
