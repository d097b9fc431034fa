"""Where a Service answers: the link that every command and page shows."""

from gpupool.contract.names import ANNOTATION_ADDRESS
from kubeclient.objects import Obj
from kubeclient.service_links import link, tcp_ports


def link_of(service: Obj) -> str:
    """For a browser; empty: the Service has no address that people outside the cluster can use.

    In a local cluster its controller writes it down. Elsewhere a load balancer has an address.
    """
    written = (service["metadata"].get("annotations") or {}).get(ANNOTATION_ADDRESS, "")
    # Anybody who may write a Service may write its annotations: a page must not link to a script.
    if str(written).startswith(("http://", "https://")):
        return str(written)
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    hosts = filter(None, (entry.get("hostname") or entry.get("ip") for entry in ingress))
    host, ports = next(hosts, ""), tcp_ports(service)
    return link(ports[0], host, ports[0]["port"]) if host and ports else ""
