"""What NetworkPolicies let through, by the rules of networking.k8s.io/v1, whoever has written them.

A connection needs the egress of its source and the ingress of its destination. A pod that no policy
of a direction selects is open in it. Whether somebody is a pod or an address makes a difference:
selectors find pods, and address blocks are for what is no pod.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubeclient.objects import Obj

_NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class Pod:
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)  # by name


@dataclass(frozen=True)
class Host:
    address: str


End = Pod | Host


def lets_through(
    policies: Iterable[Obj], source: End, destination: End, port: int, protocol: str = "TCP"
) -> bool:
    found = list(policies)

    def passes(rule: Obj, peers: str, other: End, namespace: str) -> bool:
        return _port_matches(rule.get("ports"), destination, port, protocol) and (
            _peer_matches(rule.get(peers), other, namespace)
        )

    out, into = _rules(found, source, "Egress"), _rules(found, destination, "Ingress")
    return (out is None or any(passes(each, "to", destination, space) for space, each in out)) and (
        into is None or any(passes(each, "from", source, space) for space, each in into)
    )


def _rules(policies: list[Obj], held: End, direction: str) -> list[tuple[str, Obj]] | None:
    """With the namespaces of their policies. None: nobody holds it in this direction."""
    if not isinstance(held, Pod):
        return None
    holding = [
        each["spec"]
        for each in policies
        if each["metadata"]["namespace"] == held.namespace
        and selects(each["spec"]["podSelector"], held.labels)
        and direction in each["spec"]["policyTypes"]
    ]
    if not holding:
        return None
    rules = [rule for spec in holding for rule in spec.get(direction.lower()) or ()]
    return [(held.namespace, rule) for rule in rules]


def _port_matches(wanted: list[Obj] | None, served: End, port: int, protocol: str) -> bool:
    for each in wanted or [{"protocol": protocol}]:
        first: int | str | None = each.get("port", port)
        if isinstance(first, str):
            first = served.ports.get(first) if isinstance(served, Pod) else None
        if first is None or each.get("protocol", "TCP") != protocol:
            continue
        if first <= port <= each.get("endPort", first):
            return True
    return False


def _peer_matches(peers: list[Obj] | None, other: End, namespace: str) -> bool:
    return not peers or any(_is_peer(peer, other, namespace) for peer in peers)


def _is_peer(peer: Obj, other: End, namespace: str) -> bool:
    if "ipBlock" in peer:
        return isinstance(other, Host) and _is_in(peer["ipBlock"], other.address)
    if not isinstance(other, Pod):
        return False
    if "namespaceSelector" in peer:
        if not selects(peer["namespaceSelector"], {_NAMESPACE_NAME: other.namespace}):
            return False
    elif other.namespace != namespace:
        return False
    return selects(peer.get("podSelector") or {}, other.labels)


def _is_in(block: Obj, address: str) -> bool:
    found = ipaddress.ip_address(address)

    def within(text: str) -> bool:
        net = ipaddress.ip_network(text)
        return net.version == found.version and found in net

    return within(block["cidr"]) and not any(map(within, block.get("except") or ()))


def selects(selector: Obj, labels: Mapping[str, str]) -> bool:
    """An empty one selects all."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions") or ():
        value, values = labels.get(each["key"]), each.get("values") or ()
        is_met = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[each["operator"]]
        if not is_met:
            return False
    return True
