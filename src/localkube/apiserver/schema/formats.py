"""String formats that CRD schemas may name, as Kubernetes understands them."""

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from localkube.apiserver.schema.times import TIME_LAYOUT, BadTime, stored_time

_UNITS = (
    r"(?:n|ns|nano|us|µs|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week|micro)(?:second|ute|s|ond)*"
)
_DURATION = re.compile(rf"(?<![0-9])[0-9]+(?:\.[0-9]*)?\s*{_UNITS}(?![a-z])", re.IGNORECASE)
_PATTERNS = {
    "bsonobjectid": r"[0-9a-fA-F]{24}",
    "email": r"[^@\s<>]+@[^@\s<>]+",
    "hexcolor": r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})",
    "hostname": r"[^\W_](?:-?[^\W_]{0,62})?"
    r"|(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63}",
    "mac": r"(?i)[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5,19}|(?:-[0-9a-f]{2}){5,19})"
    r"|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2,9}",
    "rgbcolor": r"rgb\(\s*[0-9]{1,3}\s*,\s*[0-9]{1,3}\s*,\s*[0-9]{1,3}\s*\)",
    "ssn": r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}",
    "uuid": r"(?i)[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}",
    "uuid3": r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}",
    "uuid4": r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}",
    "uuid5": r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}",
}


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _is_byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(text) % 4 == 0


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_date_time(text: str) -> bool:
    try:
        stored_time(text.upper(), TIME_LAYOUT)
    except BadTime:
        return False
    return True


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and len(part) < 4 and int(part) < 256 for part in parts
    )


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not length.isascii() or not length.isdigit():
        return False
    bits = 32 if _is_ipv4(address) else 128 if _is_ipv6(address) else -1
    return len(length) <= 3 and int(length) <= bits


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


FORMATS: dict[str, Callable[[str], bool]] = {
    **{name: _matches(pattern) for name, pattern in _PATTERNS.items()},
    "byte": _is_byte,
    "cidr": _is_cidr,
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": lambda text: _DURATION.search(text) is not None,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "password": lambda text: True,
    "uri": _is_uri,
}
# Said of numbers; they promise a size, and no server checks it.
NUMBER_FORMATS = frozenset({"int32", "int64", "float", "double"})
# Known to Kubernetes, but not checked here.
UNCHECKED_FORMATS = frozenset({"creditcard", "isbn", "isbn10", "isbn13"})
