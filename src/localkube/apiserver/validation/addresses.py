"""IP addresses and CIDRs, read as generously as Kubernetes does: leading zeros are decimal."""

import ipaddress
import re
from collections.abc import Sequence
from typing import TypeAlias

from localkube.apiserver.memory import remembered
from localkube.apiserver.validation.errors import Errors, invalid

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_DOTTED = re.compile(r"[0-9]+(\.[0-9]+){3}", re.ASCII)
_DIGITS = re.compile("[0-9]{1,4}", re.ASCII)
_IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_CIDR_TEXT = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


@remembered(16_384)
def parsed_ip(text: str) -> Address | None:
    if len(text) > 64 or "%" in text:  # no zones
        return None
    if _DOTTED.fullmatch(text):
        text = ".".join(part.lstrip("0") or "0" for part in text.split("."))
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


def is_cidr(text: str) -> bool:
    base, slash, bits = text.partition("/")
    address = parsed_ip(base)
    if address is None or not slash or not _DIGITS.fullmatch(bits):
        return False
    return int(bits) <= (32 if ":" not in base else 128)


def is_ipv6(text: str) -> bool:
    return isinstance(parsed_ip(text), ipaddress.IPv6Address)


def valid_ip(errors: Errors, path: str, text: str, old: Sequence[str] = ()) -> bool:
    """`old`: what was stored before stays valid."""
    if text in old or parsed_ip(text) is not None:
        return True
    errors.append(invalid(path, text, _IP_TEXT))
    return False


def valid_cidr(errors: Errors, path: str, text: str, old: Sequence[str] = ()) -> None:
    if text not in old and not is_cidr(text):
        errors.append(invalid(path, text, _CIDR_TEXT))


def endpoint_ip(errors: Errors, path: str, text: str) -> None:
    """An address that traffic may be sent to."""
    address = parsed_ip(text)
    if address is None:
        errors.append(invalid(path, text, "must be a valid IP address"))
        return
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        what = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        errors.append(invalid(path, text, what))
    if address.is_link_local:
        what = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        errors.append(invalid(path, text, what))
    if _is_link_local_multicast(address):
        what = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, text, what))


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02
