"""Which proxy the environment names for a server: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in either
case, as kubectl reads them."""

import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

PORTS = {"http": 80, "https": 443}


def environment_proxy(url: str, environ: Mapping[str, str]) -> str:
    """Empty: none. The loopback interface never has one."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return ""
    name = f"{parts.scheme}_proxy"
    # Lower case goes first, also if it is empty.
    proxy = environ.get(name, environ.get(name.upper(), ""))
    left_out = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    port = parts.port or PORTS.get(parts.scheme)
    if not proxy or any(_names(rule.strip(), host, port) for rule in left_out.split(",")):
        return ""
    if proxy.startswith("https://"):
        # Most who write this mean http://, and it was never used.
        log.warning("a proxy that speaks TLS itself is ignored", extra={"variable": name.upper()})
        return ""
    return proxy


def _names(rule: str, host: str, port: int | None) -> bool:
    """Whether a rule of NO_PROXY means this host: all of them (*), a host or a domain with all that
    is in it (corp, .corp, *.corp), perhaps with a port, or a network (10.0.0.0/8)."""
    if "/" in rule:
        return _is_in(rule, host)
    rule = rule.lower().removeprefix("*.").lstrip(".")
    shown = f"[{host}]" if ":" in host else host
    names = (host, f"{shown}:{port}")
    is_named = any(f".{each}".endswith(f".{rule}") for each in names)
    return rule == "*" or (bool(rule) and is_named)


def _is_in(network: str, host: str) -> bool:
    import ipaddress  # few need it

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
