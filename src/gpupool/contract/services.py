"""Where a Service answers: the link that every command and page shows."""

from gpupool.contract.names import ANNOTATION_ADDRESS
from kubeclient.objects import Obj


def link_of(service: Obj) -> str:
    """For a browser; empty: the Service has no address that people outside the cluster can use.

    In a local cluster its controller writes it down. Elsewhere a load balancer has an address.
    """
    written = (service["metadata"].get("annotations") or {}).get(ANNOTATION_ADDRESS, "")
    if written:
        return str(written)
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    hosts = [entry.get("hostname") or entry.get("ip") for entry in ingress]
    ports = [each for each in service["spec"].get("ports") or () if each.get("protocol") != "UDP"]
    if not any(hosts) or not ports:
        return ""
    host, port = next(filter(None, hosts)), ports[0]["port"]
    secure = port == 443 or ports[0].get("name") == "https"
    shown = f"[{host}]" if ":" in host else host
    usual = 443 if secure else 80
    return f"{'https' if secure else 'http'}://{shown}" + ("" if port == usual else f":{port}")
