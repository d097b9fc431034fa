"""Services: IP families of a single-stack IPv4 cluster, and fields that come and go with the type.

Cluster IPs, node ports and the health check's node port are allocated elsewhere, after this and
before validation.
"""

from kubeclient.objects import Obj
from localkube.apiserver.defaults.core_service import is_external


def service(obj: Obj) -> None:
    spec: Obj = obj["spec"]
    if "clusterIP" in spec and "clusterIPs" not in spec:
        spec["clusterIPs"] = [spec["clusterIP"]]
    _ip_families(spec)


def service_update(new: Obj, old: Obj) -> None:
    after, before = new["spec"], old["spec"]
    _keep_allocated(after, before)
    _sync_cluster_ips(after, before)
    if needs_cluster_ip(after) and "ipFamilyPolicy" in before:
        after.setdefault("ipFamilyPolicy", before["ipFamilyPolicy"])
    _ip_families(after)
    _drop_of_type(after, before)
    if after["type"] != "LoadBalancer":
        new["status"] = new.get("status", {}) | {"loadBalancer": {}}


def needs_cluster_ip(spec: Obj) -> bool:
    return bool(spec["type"] != "ExternalName")


def needs_node_ports(spec: Obj) -> bool:
    wanted: bool = spec.get("allocateLoadBalancerNodePorts", True)
    return spec["type"] == "NodePort" or (spec["type"] == "LoadBalancer" and wanted)


def needs_health_check_port(spec: Obj) -> bool:
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _keep_allocated(new: Obj, old: Obj) -> None:
    """An update that leaves out allocated addresses and ports keeps those of the old service."""
    if needs_cluster_ip(new) and needs_cluster_ip(old):
        for name in ("clusterIP", "clusterIPs"):
            if name in old:
                new.setdefault(name, old[name])
    if needs_node_ports(new) and needs_node_ports(old):
        taken = _node_ports(new) & _node_ports(old)
        named = {port.get("name"): port.get("nodePort") for port in old.get("ports", ())}
        for port in new.get("ports", ()):
            number = named.get(port.get("name"))
            if number is not None and number not in taken:
                port.setdefault("nodePort", number)
    if needs_health_check_port(new) and needs_health_check_port(old):
        number = old.get("healthCheckNodePort")
        if number is not None:
            new.setdefault("healthCheckNodePort", number)


def _sync_cluster_ips(new: Obj, old: Obj) -> None:
    """`clusterIP` is the first of `clusterIPs`; whoever changes one need not know the other."""
    if new.get("clusterIP") == old.get("clusterIP"):
        if "clusterIPs" in old:
            new.setdefault("clusterIPs", old["clusterIPs"])
    elif new.get("clusterIPs") == old.get("clusterIPs"):
        if "clusterIP" in new:
            new["clusterIPs"] = [new["clusterIP"]]
        else:
            new.pop("clusterIPs", None)


def _ip_families(spec: Obj) -> None:
    if not needs_cluster_ip(spec):
        return
    # Nobody knows which addresses will be put by hand behind a headless service.
    by_hand = spec.get("clusterIP") == "None" and "selector" not in spec
    policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack" if by_hand else "SingleStack")
    families = spec.setdefault("ipFamilies", ["IPv4"])
    if by_hand and policy != "SingleStack" and len(families) == 1:
        spec["ipFamilies"] = [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]


def _drop_of_type(new: Obj, old: Obj) -> None:
    """Fields of the old type that the update did not change are dropped when the type changes."""
    external = ("NodePort", "LoadBalancer")
    had_ports = old["type"] in external and new["type"] not in external
    if had_ports and _node_ports(new) <= _node_ports(old):
        for port in new.get("ports", ()):
            port.pop("nodePort", None)
    for name in _gone(new, old):
        if new.get(name) == old.get(name):
            new.pop(name, None)


def _gone(new: Obj, old: Obj) -> list[str]:
    gone = []
    if needs_cluster_ip(old) and not needs_cluster_ip(new):
        gone += ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]
        gone.append("internalTrafficPolicy")
    if needs_health_check_port(old) and not needs_health_check_port(new):
        gone.append("healthCheckNodePort")
    if old["type"] == "LoadBalancer" and new["type"] != "LoadBalancer":
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if is_external(old) and not is_external(new):
        gone.append("externalTrafficPolicy")
    return gone


def _node_ports(spec: Obj) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports", ()) if "nodePort" in port}
