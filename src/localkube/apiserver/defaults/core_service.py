"""Defaults of Services and Endpoints."""

from kubeclient.objects import Obj

_EXTERNAL = ("NodePort", "LoadBalancer")
_AFFINITY_SECONDS = 10800


def service(value: Obj) -> None:
    spec: Obj = value["spec"]
    _session_affinity(spec)
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if not port["targetPort"]:
            port["targetPort"] = port["port"]
    if is_external(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] in ("ClusterIP", *_EXTERNAL):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in value["status"]["loadBalancer"].get("ingress", ()):
            if "ip" in ingress:
                ingress.setdefault("ipMode", "VIP")


def is_external(spec: Obj) -> bool:
    kind = spec.get("type")
    return kind in _EXTERNAL or (kind == "ClusterIP" and "externalIPs" in spec)


def endpoints(value: Obj) -> None:
    for subset in value.get("subsets", ()):
        for port in subset.get("ports", ()):
            port.setdefault("protocol", "TCP")


def _session_affinity(spec: Obj) -> None:
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = spec.get("sessionAffinityConfig", {})
        if "timeoutSeconds" not in config.get("clientIP", {}):
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
