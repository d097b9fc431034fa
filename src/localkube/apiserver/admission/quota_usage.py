"""What one object counts for in resource quotas, and which quotas it counts in. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kubeclient.objects import Obj
from kubeclient.quantity import Quantity, add, of_nanos, parse
from kubeclient.times import seconds_of
from localkube.apiserver.defaults.pod_resources import pod_totals, qos_class

Usage: TypeAlias = dict[str, Quantity]

# Stored, but never counted; and resources that had a name of their own before "count/...".
_UNCOUNTED = frozenset({"events"})
_ALIASED = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
_NATIVE_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_MUST_BE_GIVEN = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
_OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_ONE = parse("1")
_ZERO = of_nanos(0)


def usage_of(resource: str, thing: Obj, now_s: float) -> Usage:
    """By the names that quotas use. `resource`: "pods", "deployments.apps"."""
    if resource in _UNCOUNTED:
        return {}
    usage = {f"count/{resource}": _ONE}
    if resource in _ALIASED:
        usage[resource] = _ONE
    more = _MORE.get(resource)
    return usage | more(thing, now_s) if more else usage


def matches_scopes(quota: Obj, resource: str, thing: Obj) -> bool:
    spec = quota["spec"]
    selectors = [{"scopeName": s, "operator": "Exists"} for s in spec.get("scopes") or ()]
    selectors += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_matches_scope(selector, resource, thing) for selector in selectors)


def missing_requirements(quota: Obj, resource: str, thing: Obj) -> str:
    """Quotas on CPU and memory want every container to say what it asks for."""
    spec = thing.get("spec") or {}
    if resource != "pods" or _has_pod_level(spec):
        return ""
    required = _MUST_BE_GIVEN & quota["spec"].get("hard", {}).keys()
    missing: dict[str, set[str]] = {}
    for container in [*spec.get("containers", ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        given = _compute(resources.get("requests") or {}, resources.get("limits") or {})
        for name in required - given.keys():
            missing.setdefault(name, set()).add(container["name"])
    texts = [f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing)]
    return f"must specify {'; '.join(texts)}" if texts else ""


def is_terminating(pod: Obj) -> bool:
    """In the sense of quota scopes: it will end by itself."""
    return pod["spec"].get("activeDeadlineSeconds") is not None


def _pod_usage(pod: Obj, now_s: float) -> Usage:
    if _is_over(pod, now_s):
        return {}
    spec = pod["spec"]
    requests, limits = pod_totals(spec, "requests"), pod_totals(spec, "limits")
    for name, text in (spec.get("overhead") or {}).items():
        requests[name] = _sum(requests.get(name), text)
        if name in limits:
            limits[name] = _sum(limits[name], text)
    return {"pods": _ONE} | _compute(requests, limits)


def _is_over(pod: Obj, now_s: float) -> bool:
    """Whether the pod has ended, or is so long overdue that it no longer counts."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    metadata = pod["metadata"]
    deleted_s = seconds_of(metadata.get("deletionTimestamp") or "")
    grace_s = metadata.get("deletionGracePeriodSeconds")
    return deleted_s is not None and grace_s is not None and now_s > deleted_s + grace_s


def _compute(requests: Mapping[str, str], limits: Mapping[str, str]) -> Usage:
    usage: Usage = {}
    for name, text in requests.items():
        if name in _NATIVE_COMPUTE or name.startswith("hugepages-"):
            usage[name] = parse(text)
            usage[f"requests.{name}"] = parse(text)
        elif "/" in name:
            usage[f"requests.{name}"] = parse(text)
    for name in _NATIVE_COMPUTE:
        if name in limits:
            usage[f"limits.{name}"] = parse(limits[name])
    return usage


def _sum(left: str | None, right: str) -> str:
    return right if left is None else add(parse(left), parse(right)).text


def _service_usage(service: Obj, now_s: float) -> Usage:
    spec = service["spec"]
    ports = spec.get("ports") or ()
    node_ports, balancers = 0, 0
    if spec.get("type") == "NodePort":
        node_ports = len(ports)
    elif spec.get("type") == "LoadBalancer":
        balancers = 1
        allocated = spec.get("allocateLoadBalancerNodePorts", True)
        node_ports = len(ports) if allocated else sum(bool(p.get("nodePort")) for p in ports)
    return {
        "services": _ONE,
        "services.nodeports": parse(str(node_ports)),
        "services.loadbalancers": parse(str(balancers)),
    }


def _claim_usage(claim: Obj, now_s: float) -> Usage:
    spec, annotations = claim["spec"], claim["metadata"].get("annotations") or {}
    usage: Usage = {"persistentvolumeclaims": _ONE}
    storage = (spec.get("resources") or {}).get("requests", {}).get("storage")
    if storage is not None:
        usage["requests.storage"] = parse(storage)
    name = annotations.get(_OLD_STORAGE_CLASS, spec.get("storageClassName"))
    if name:
        prefix = f"{name}.storageclass.storage.k8s.io/"
        usage |= {f"{prefix}{key}": amount for key, amount in usage.items()}
    return usage


_MORE: dict[str, Callable[[Obj, float], Usage]] = {
    "pods": _pod_usage,
    "services": _service_usage,
    "persistentvolumeclaims": _claim_usage,
}


def _matches_scope(selector: Obj, resource: str, thing: Obj) -> bool:
    if resource != "pods":
        return False
    match selector.get("scopeName"):
        case "Terminating":
            return is_terminating(thing)
        case "NotTerminating":
            return not is_terminating(thing)
        case "BestEffort":
            return qos_class(thing["spec"]) == "BestEffort"
        case "NotBestEffort":
            return qos_class(thing["spec"]) != "BestEffort"
        case "PriorityClass":
            return _matches_priority(selector, thing["spec"].get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return any(_looks_elsewhere(term) for term in _affinity_terms(thing["spec"]))
        case _:
            return False


def _matches_priority(selector: Obj, name: str) -> bool:
    values = selector.get("values") or ()
    match selector.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _affinity_terms(spec: Obj) -> Iterable[Obj]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(kind) or {}
        yield from found.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in found.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _looks_elsewhere(term: Obj) -> bool:
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None


def _has_pod_level(spec: Obj) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))
