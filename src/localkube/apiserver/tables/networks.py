"""Rows of services, their endpoints and ingresses."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.tables.texts import (
    NONE,
    age,
    label_text,
    load_balancer,
    name,
    selector_text,
    some_of,
    spec_of,
)


def service(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    addresses = spec.get("clusterIPs") or ()
    return [
        name(thing),
        spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external_address(spec, thing.get("status")),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(thing, now_s),
        label_text(spec.get("selector")),
    ]


def _port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}"


def _external_address(spec: Obj, status: Obj | None) -> str:
    given = ",".join(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return given or NONE
        case "LoadBalancer":
            found = load_balancer(status)
            return ",".join(text for text in (found, given) if text) or "<pending>"
        case "ExternalName":
            external: str = spec.get("externalName", "")
            return external
        case _:
            return "<unknown>"


def endpoints(thing: Obj, now_s: float) -> list[Any]:
    subsets = thing.get("subsets") or ()
    found = [address for subset in subsets for address in _subset_addresses(subset)]
    return [name(thing), some_of(found, empty="") if subsets else NONE, age(thing, now_s)]


def _subset_addresses(subset: Obj) -> list[str]:
    addresses = [each.get("ip", "") for each in subset.get("addresses") or ()]
    ports = subset.get("ports") or ()
    if not ports:
        return addresses
    return [
        f"[{ip}]:{port.get('port', 0)}" if ":" in ip else f"{ip}:{port.get('port', 0)}"
        for port in ports
        for ip in addresses
    ]


def endpoint_slice(thing: Obj, now_s: float) -> list[Any]:
    ports = [
        str(port["port"]) if port.get("port") is not None else port.get("name") or "*"
        for port in thing.get("ports") or ()
    ]
    addresses = [
        address
        for endpoint in thing.get("endpoints") or ()
        for address in endpoint.get("addresses") or ()
    ]
    return [
        name(thing),
        thing.get("addressType", ""),
        some_of(ports),
        some_of(addresses),
        age(thing, now_s),
    ]


def ingress(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    return [
        name(thing),
        spec.get("ingressClassName") or NONE,
        _hosts(spec.get("rules") or []),
        load_balancer(thing.get("status")),
        "80, 443" if spec.get("tls") else "80",
        age(thing, now_s),
    ]


def _hosts(rules: list[Obj]) -> str:
    """The first three hosts; what is more counts rules, also those without a host."""
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def ingress_class(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    found = spec.get("parameters")
    parameters = NONE
    if found is not None:
        group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
        parameters = f"{found.get('kind', '')}{group}/{found.get('name', '')}"
    return [name(thing), spec.get("controller", ""), parameters, age(thing, now_s)]


def network_policy(thing: Obj, now_s: float) -> list[Any]:
    selector = spec_of(thing).get("podSelector") or {}
    return [name(thing), selector_text(selector), age(thing, now_s)]
