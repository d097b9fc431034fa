"""Pod object -> PodRequest."""

from collections.abc import Iterable

from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.node_terms import node_selector, node_term, required_nodes
from gpupool.contract.objects import Obj
from gpupool.contract.pod_terms import required_terms, spreads, weighed_terms
from gpupool.core.quantity import milli_value, parse, value
from gpupool.core.request import HostPort, PodRequest, Toleration
from gpupool.core.selectors import SelectorError


def amounts(resources: Obj | None) -> dict[str, int]:
    """A resource list as whole numbers: CPU in thousandths, all else in units, rounded up."""
    return {
        name: milli_value(parse(text)) if name == "cpu" else value(parse(text))
        for name, text in (resources or {}).items()
    }


def pod_resources(pod: Obj) -> dict[str, int]:
    """What the pod takes of its node, by Kubernetes' formula.

    Containers and sidecars run together and add up; an init container runs with only the
    sidecars that were started before it, so of those sums the largest counts.
    """
    spec = pod["spec"]
    total: dict[str, int] = {}
    for container in spec["containers"]:
        _add(total, _requests(container))
    sidecars: dict[str, int] = {}
    peaks: list[dict[str, int]] = []
    for container in spec.get("initContainers") or ():
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            peaks.append(dict(sidecars))
        else:
            peak = dict(sidecars)
            _add(peak, asked)
            peaks.append(peak)
    _add(total, sidecars)
    for peak in peaks:
        for name, amount in peak.items():
            total[name] = max(total.get(name, 0), amount)
    total |= amounts((spec.get("resources") or {}).get("requests"))  # pod level wins
    _add(total, amounts(spec.get("overhead")))
    total["pods"] = 1
    return total


def _requests(container: Obj) -> dict[str, int]:
    return amounts((container.get("resources") or {}).get("requests"))


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


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
        tolerations=tuple(_toleration(t) for t in spec.get("tolerations") or ()),
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


def _toleration(toleration: Obj) -> Toleration:
    return Toleration(
        key=toleration.get("key", ""),
        exists=toleration.get("operator") == "Exists",
        value=toleration.get("value", ""),
        effect=toleration.get("effect", ""),
    )


def host_ports(spec: Obj) -> Iterable[HostPort]:
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*sidecars, *spec["containers"]):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield HostPort(
                    port.get("hostIP") or "0.0.0.0",
                    port.get("protocol", "TCP"),
                    port["hostPort"],
                )


def _unsupported(spec: Obj) -> Iterable[str]:
    if spec.get("resourceClaims"):
        yield "spec.resourceClaims"
