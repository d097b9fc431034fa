"""Defaults of networking and discovery kinds."""

from kubeclient.objects import Obj


def network_policy(value: Obj) -> None:
    spec: Obj = value["spec"]
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction, ()):
            for port in rule.get("ports", ()):
                port.setdefault("protocol", "TCP")


def ingress_class(value: Obj) -> None:
    if "parameters" in value["spec"]:
        value["spec"]["parameters"].setdefault("scope", "Cluster")


def endpoint_slice(value: Obj) -> None:
    for port in value.get("ports", ()):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
