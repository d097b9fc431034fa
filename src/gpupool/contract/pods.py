"""Pod object -> PodRequest.

A part that cannot be read becomes an unsupported constraint: a pending pod stays pending, and a
bound pod still holds what it has.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.pod_terms import required_terms, spreads, weighed_terms
from gpupool.core.pods import PodRequest
from kubeclient.objects import Obj
from kubeclient.placement import (
    NodeTerm,
    host_ports,
    node_selector,
    node_term,
    pod_resources,
    required_nodes,
    tolerations,
)

T = TypeVar("T")

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED_BY_SCHEDULER = "PreemptionByScheduler"
DEFAULT_GRACE_S = 30


def pod_request(pod: Obj) -> PodRequest:
    spec, metadata = pod["spec"], pod["metadata"]
    gpus = gpu_asks(pod)
    wrong = [*_unsupported(spec), *gpus.wrong]

    def read(what: str, part: Callable[[], T], without: T) -> T:
        try:
            return part()
        # What a newer Kubernetes allows here may be unknown to us: another operator, another type.
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            wrong.append(f"{what} that cannot be read: {error}")
            return without

    return PodRequest(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        resources=read("resources", lambda: pod_resources(pod), {"pods": 1}),
        node_selector=node_selector(spec),
        node_terms=read("node affinity", lambda: required_nodes(spec), None),
        preferred=read("preferred node affinity", lambda: _preferred(spec), ()),
        tolerations=tolerations(spec),
        host_ports=tuple(host_ports(spec)),
        node_name=spec.get("nodeName", ""),
        runtime_class=spec.get("runtimeClassName") or "",
        labels=metadata.get("labels") or {},
        priority=spec.get("priority") or 0,
        priority_class=spec.get("priorityClassName") or "",
        has_deadline=spec.get("activeDeadlineSeconds") is not None,
        may_preempt=spec.get("preemptionPolicy") != "Never",
        terminating="deletionTimestamp" in metadata,
        preempted="deletionTimestamp" in metadata and _was_preempted(pod),
        grace_s=_grace_s(pod),
        started=(pod.get("status") or {}).get("startTime") or "",
        affinity=read("pod affinity", lambda: required_terms(pod, "podAffinity"), ()),
        anti_affinity=read("anti-affinity", lambda: required_terms(pod, "podAntiAffinity"), ()),
        near=read("preferred pod affinity", lambda: weighed_terms(pod), ()),
        spreads=read("a topology spread constraint", lambda: spreads(pod), ()),
        gpus=gpus.asks,
        card_placement=gpus.placement,
        same_card=gpus.same_card,
        different_card=gpus.different_card,
        card_choice=gpus.choice,
        unsupported=tuple(wrong),  # the last one, because the others may find something
    )


def _preferred(spec: Obj) -> tuple[tuple[int, NodeTerm], ...]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return tuple(
        (term["weight"], node_term(term["preference"]))
        for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    )


def _was_preempted(pod: Obj) -> bool:
    return any(
        (each.get("type"), each.get("status"), each.get("reason"))
        == (DISRUPTION_TARGET, "True", PREEMPTED_BY_SCHEDULER)
        for each in (pod.get("status") or {}).get("conditions") or ()
    )


def _grace_s(pod: Obj) -> int:
    """Of the deletion, if it has begun: it may be shorter than what the spec says."""
    for found in (
        pod["metadata"].get("deletionGracePeriodSeconds"),
        pod["spec"].get("terminationGracePeriodSeconds"),
    ):
        if isinstance(found, int):
            return max(0, found)
    return DEFAULT_GRACE_S


def _unsupported(spec: Obj) -> Iterable[str]:
    if spec.get("resourceClaims"):
        yield "spec.resourceClaims"
