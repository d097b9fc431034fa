"""A service as lists show it."""

from dataclasses import dataclass

from gpupool.contract.services import link_of
from kubeclient.objects import Obj


@dataclass(frozen=True, slots=True)
class ServiceRow:
    namespace: str
    name: str
    kind: str  # ClusterIP, NodePort, LoadBalancer
    cluster_ip: str
    inside: tuple[str, ...]  # name:port protocol, for pods
    link: str  # for people outside of the cluster; empty: there is none
    awaits_balancer: bool  # it wants a load balancer, and has none yet
    selector: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    created: str


def service_row(service: Obj) -> ServiceRow:
    metadata, spec = service["metadata"], service.get("spec") or {}
    ports = spec.get("ports") or ()
    return ServiceRow(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kind=str(spec.get("type") or "ClusterIP"),
        cluster_ip=str(spec.get("clusterIP") or ""),
        inside=tuple(
            f"{metadata['name']}:{port.get('port')} {port.get('protocol') or 'TCP'}"
            for port in ports
        ),
        link=link_of(service),
        awaits_balancer=spec.get("type") == "LoadBalancer" and not _balancers(service),
        selector=tuple(sorted((spec.get("selector") or {}).items())),
        labels=tuple(sorted((metadata.get("labels") or {}).items())),
        created=metadata.get("creationTimestamp") or "",
    )


def _balancers(service: Obj) -> list[Obj]:
    return ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
