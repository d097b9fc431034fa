"""Pod object -> PodRequest."""

from collections.abc import Iterable

from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.pod_terms import required_terms, spreads, weighed_terms
from gpupool.core.pods import PodRequest
from kubeclient.objects import Obj
from kubeclient.placement import (
    host_ports,
    node_selector,
    node_term,
    pod_resources,
    required_nodes,
    tolerations,
)
from kubeclient.selectors import SelectorError


def pod_request(pod: Obj) -> PodRequest:
    spec, metadata = pod["spec"], pod["metadata"]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    gpus = gpu_asks(pod)
    try:
        wrong = [*_unsupported(spec), *gpus.wrong]
        near, away = required_terms(pod, "podAffinity"), required_terms(pod, "podAntiAffinity")
        weighed, spread = weighed_terms(pod), spreads(pod)
    except SelectorError as error:
        wrong.append(f"a label selector that cannot be read: {error}")
        near, away, weighed, spread = (), (), (), ()
    return PodRequest(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        resources=pod_resources(pod),
        node_selector=node_selector(spec),
        node_terms=required_nodes(spec),
        preferred=tuple(
            (term["weight"], node_term(term["preference"]))
            for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        ),
        tolerations=tolerations(spec),
        host_ports=tuple(host_ports(spec)),
        node_name=spec.get("nodeName", ""),
        unsupported=tuple(wrong),
        labels=metadata.get("labels") or {},
        priority=spec.get("priority") or 0,
        priority_class=spec.get("priorityClassName") or "",
        has_deadline=spec.get("activeDeadlineSeconds") is not None,
        may_preempt=spec.get("preemptionPolicy") != "Never",
        terminating="deletionTimestamp" in metadata,
        started=(pod.get("status") or {}).get("startTime") or "",
        affinity=near,
        anti_affinity=away,
        near=weighed,
        spreads=spread,
        gpus=gpus.asks,
        card_placement=gpus.placement,
        same_card=gpus.same_card,
        different_card=gpus.different_card,
    )


def _unsupported(spec: Obj) -> Iterable[str]:
    if spec.get("resourceClaims"):
        yield "spec.resourceClaims"
