"""Endpoints, the old list of a service's addresses."""

from kubeclient.objects import Obj
from localkube.apiserver.validation.addresses import endpoint_ip, valid_ip
from localkube.apiserver.validation.containers import PROTOCOLS
from localkube.apiserver.validation.errors import (
    Errors,
    invalid_each,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import (
    dns_label,
    dns_subdomain,
    label_key,
    port_number,
)
from localkube.apiserver.validation.metadata import own_meta, own_meta_update


def create(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _subsets(errors, obj)
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    own_meta(errors, new["metadata"], dns_subdomain)
    if new.get("subsets") != old.get("subsets"):
        _subsets(errors, new)
    return errors


def _subsets(errors: Errors, obj: Obj) -> None:
    for place, subset in enumerate(obj.get("subsets", ())):
        path = f"subsets[{place}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            what = "must specify `addresses` or `notReadyAddresses`"
            errors.append(required(path, what))
        for group in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(group, ())):
                _address(errors, address, f"{path}.{group}[{number}]")
        ports = subset.get("ports", ())
        for number, port in enumerate(ports):
            _endpoint_port(errors, port, f"{path}.ports[{number}]", named=len(ports) > 1)


def _address(errors: Errors, address: Obj, path: str) -> None:
    valid_ip(errors, f"{path}.ip", address["ip"])
    host, node = address.get("hostname"), address.get("nodeName")
    if host:
        invalid_each(errors, f"{path}.hostname", host, dns_label(host))
    if node is not None:
        invalid_each(errors, f"{path}.nodeName", node, dns_subdomain(node))
    endpoint_ip(errors, f"{path}.ip", address["ip"])


def _endpoint_port(errors: Errors, port: Obj, path: str, *, named: bool) -> None:
    name = port.get("name", "")
    if named and not name:
        errors.append(required(f"{path}.name"))
    elif name:
        invalid_each(errors, f"{path}.name", name, dns_label(name))
    invalid_each(errors, f"{path}.port", port["port"], port_number(port["port"]))
    if port["protocol"] not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS))
    if "appProtocol" in port:
        protocol = port["appProtocol"]
        invalid_each(errors, f"{path}.appProtocol", protocol, label_key(protocol))
