"""EndpointSlices."""

import ipaddress
from collections.abc import Sequence

from kubeclient.objects import Obj
from localkube.apiserver.validation.addresses import (
    endpoint_ip,
    is_ipv6,
    parsed_ip,
    valid_ip,
)
from localkube.apiserver.validation.containers import PROTOCOLS
from localkube.apiserver.validation.domains import host_name
from localkube.apiserver.validation.errors import (
    Errors,
    duplicate,
    invalid,
    invalid_each,
    not_supported,
    required,
    too_many,
    unchanged,
)
from localkube.apiserver.validation.formats import (
    NameCheck,
    dns_label,
    dns_subdomain,
    label_key,
    label_value,
)
from localkube.apiserver.validation.metadata import labels, own_meta

_TYPES = ("FQDN", "IPv4", "IPv6")
_TOPOLOGY_MAX = 16
_ADDRESSES_MAX = 100
_PORTS_MAX = 20000
_ENDPOINTS_MAX = 1000
_HINTS_MAX = 8


def create_slice(obj: Obj) -> Errors:
    errors = _metadata_and_ports(obj)
    _endpoints(errors, obj)
    return errors


def update_slice(new: Obj, old: Obj) -> Errors:
    errors = _metadata_and_ports(new)
    if new.get("endpoints") != old.get("endpoints"):
        _endpoints(errors, new)
    unchanged(errors, new["addressType"], old["addressType"], "addressType")
    return errors


def _metadata_and_ports(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    if not obj["addressType"]:
        errors.append(required("addressType"))
    elif obj["addressType"] not in _TYPES:
        errors.append(not_supported("addressType", obj["addressType"], _TYPES))
    _ports(errors, obj.get("ports", ()))
    return errors


def _ports(errors: Errors, ports: Sequence[Obj]) -> None:
    if len(ports) > _PORTS_MAX:
        errors.append(too_many("ports", len(ports), _PORTS_MAX))
        return
    seen: set[str] = set()
    for place, port in enumerate(ports):
        path, name = f"ports[{place}]", port["name"]
        if name:
            invalid_each(errors, f"{path}.name", name, dns_label(name))
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if port["protocol"] not in PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS))
        if "appProtocol" in port:
            protocol = port["appProtocol"]
            invalid_each(errors, f"{path}.appProtocol", protocol, label_key(protocol))


def _endpoints(errors: Errors, obj: Obj) -> None:
    listed = obj.get("endpoints", ())
    if len(listed) > _ENDPOINTS_MAX:
        errors.append(too_many("endpoints", len(listed), _ENDPOINTS_MAX))
        return
    for place, endpoint in enumerate(listed):
        path = f"endpoints[{place}]"
        _addresses(errors, endpoint.get("addresses", ()), obj["addressType"], f"{path}.addresses")
        node, host = endpoint.get("nodeName"), endpoint.get("hostname")
        if node is not None:
            invalid_each(errors, f"{path}.nodeName", node, dns_subdomain(node))
        topology = endpoint.get("deprecatedTopology", {})
        if len(topology) > _TOPOLOGY_MAX:
            at = f"{path}.deprecatedTopology"
            errors.append(too_many(at, len(topology), _TOPOLOGY_MAX))
        labels(errors, topology, f"{path}.deprecatedTopology")
        if host is not None:
            invalid_each(errors, f"{path}.hostname", host, dns_label(host))
        hints = endpoint.get("hints", {})
        if _hints(errors, hints.get("forZones", ()), label_value, f"{path}.hints.forZones"):
            _hints(errors, hints.get("forNodes", ()), dns_subdomain, f"{path}.hints.forNodes")


def _addresses(errors: Errors, addresses: Sequence[str], kind: str, path: str) -> None:
    if not addresses:
        errors.append(required(path, "must contain at least 1 address"))
    elif len(addresses) > _ADDRESSES_MAX:
        errors.append(too_many(path, len(addresses), _ADDRESSES_MAX))
    for place, address in enumerate(addresses):
        at = f"{path}[{place}]"
        if kind == "FQDN":
            host_name(errors, address, at)
        elif kind in ("IPv4", "IPv6") and valid_ip(errors, at, address):
            if kind == "IPv6" and not _is_canonical(errors, at, address):
                continue
            if is_ipv6(address) != (kind == "IPv6"):
                errors.append(invalid(path, address, f"must be an {kind} address"))
            endpoint_ip(errors, at, address)


def _is_canonical(errors: Errors, path: str, text: str) -> bool:
    parsed = parsed_ip(text)
    if isinstance(parsed, ipaddress.IPv4Address) and ":" in text:
        errors.append(invalid(path, text, "must not be an IPv4-mapped IPv6 address"))
        return False
    if str(parsed) != text:
        errors.append(invalid(path, text, f'must be in canonical form ("{parsed}")'))
        return False
    return True


def _hints(errors: Errors, hints: Sequence[Obj], check: NameCheck, path: str) -> bool:
    if len(hints) > _HINTS_MAX:
        errors.append(too_many(path, len(hints), _HINTS_MAX))
        return False
    seen: set[str] = set()
    for place, hint in enumerate(hints):
        at, name = f"{path}[{place}].name", hint["name"]
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        invalid_each(errors, at, name, check(name))
    return True
