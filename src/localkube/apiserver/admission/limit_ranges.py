"""LimitRanger: default requests and limits of containers, and bounds on them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from kubeclient.objects import Obj
from kubeclient.quantity import NANOS, Quantity, of_nanos, parse
from localkube.apiserver.admission.attributes import (
    Attributes,
    ClusterView,
    Operation,
    refusal,
)
from localkube.apiserver.defaults.pod_resources import pod_totals

_ANNOTATION = "kubernetes.io/limit-ranger"
_ZERO = of_nanos(0)
# What limit ranges are about.
LIMITED = frozenset({"pods", "persistentvolumeclaims"})

Amounts: TypeAlias = Mapping[str, str]
# What to call the thing in texts, the resource, its bound, and the requests and limits found.
_Bound: TypeAlias = Callable[[str, str, Quantity, Amounts, Amounts], str | None]


def most_limits(limit_ranges: Sequence[Obj]) -> int:
    """How many amounts all of them name: each container may get as many."""
    limits = (limit for each in limit_ranges for limit in _limits(each))
    return sum(len(part) for limit in limits for part in limit.values() if isinstance(part, dict))


def default_limits(attributes: Attributes, cluster: ClusterView) -> None:
    """Takes requests and limits that a container leaves out from the namespace's limit ranges."""
    pod = attributes.obj
    if pod is None or not _limited(attributes):
        return
    for limit_range in cluster.list("limitranges", attributes.namespace):
        _fill(pod, limit_range)


def check_limits(attributes: Attributes, cluster: ClusterView) -> None:
    if attributes.obj is None or not _limited(attributes):
        return
    errors_of = _claim_errors if attributes.kind.kind == "PersistentVolumeClaim" else _pod_errors
    for limit_range in cluster.list("limitranges", attributes.namespace):
        errors = list(dict.fromkeys(errors_of(attributes.obj, _limits(limit_range))))
        if errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            raise refusal(attributes, text)


def _limits(limit_range: Obj) -> list[Obj]:
    """None at all is allowed, too."""
    return (limit_range.get("spec") or {}).get("limits") or []


def _limited(attributes: Attributes) -> bool:
    if attributes.old is not None and attributes.old["metadata"].get("deletionTimestamp"):
        return False
    if attributes.subresource:
        return attributes.subresource == "resize"
    # A pod's resources cannot change but by resizing.
    return attributes.operation is Operation.CREATE or attributes.kind.kind != "Pod"


def _fill(pod: Obj, limit_range: Obj) -> None:
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for limit in _limits(limit_range):
        if limit["type"] == "Container":
            requests |= limit.get("defaultRequest") or {}
            limits |= limit.get("default") or {}
    notes: list[str] = []
    for field, called in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            resources = container.setdefault("resources", {})
            for part, defaults in (("requests", requests), ("limits", limits)):
                given = resources.get(part) or {}
                added = sorted(key for key in defaults if key not in given)
                if added:
                    resources[part] = {**given, **{key: defaults[key] for key in added}}
                    notes.append(f"{', '.join(added)} {part[:-1]} for {called} {container['name']}")
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _pod_errors(pod: Obj, limits: list[Obj]) -> Iterator[str]:
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for limit in limits:
        if limit["type"] == "Container":
            for container in containers:
                resources = container.get("resources") or {}
                requests, found = resources.get("requests") or {}, resources.get("limits") or {}
                yield from _errors(limit, requests, found)
        elif limit["type"] == "Pod":
            yield from _errors(limit, pod_totals(spec, "requests"), pod_totals(spec, "limits"))


def _claim_errors(claim: Obj, limits: list[Obj]) -> Iterator[str]:
    """Of a claim only requests count."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    for limit in limits:
        if limit["type"] == "PersistentVolumeClaim":
            yield from _bound_errors(limit, "min", _minimum, requests, {})
            yield from _bound_errors(limit, "max", _maximum_request, requests, {})


def _errors(limit: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _bound_errors(limit, "min", _minimum, requests, limits)
    yield from _bound_errors(limit, "max", _maximum, requests, limits)
    yield from _bound_errors(limit, "maxLimitRequestRatio", _ratio, requests, limits)


def _bound_errors(
    limit: Obj, field: str, bound: _Bound, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    for resource, text in (limit.get(field) or {}).items():
        error = bound(limit["type"], resource, parse(text), requests, limits)
        if error:
            yield error


def _minimum(
    what: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> str | None:
    head = f"minimum {resource} usage per {what} is {bound}"
    if resource not in requests:
        return f"{head}.  No request is specified"
    if parse(requests[resource]) < bound:
        return f"{head}, but request is {requests[resource]}"
    if resource in limits and parse(limits[resource]) < bound:
        return f"{head}, but limit is {limits[resource]}"
    return None


def _maximum(
    what: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> str | None:
    head = f"maximum {resource} usage per {what} is {bound}"
    if resource not in limits:
        return f"{head}.  No limit is specified"
    if parse(limits[resource]) > bound:
        return f"{head}, but limit is {limits[resource]}"
    if resource in requests and parse(requests[resource]) > bound:
        return f"{head}, but request is {requests[resource]}"
    return None


def _maximum_request(
    what: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> str | None:
    head = f"maximum {resource} usage per {what} is {bound}"
    if resource not in requests:
        return f"{head}.  No request is specified"
    if parse(requests[resource]) > bound:
        return f"{head}, but request is {requests[resource]}"
    return None


def _ratio(
    what: str, resource: str, bound: Quantity, requests: Amounts, limits: Amounts
) -> str | None:
    head = f"{resource} max limit to request ratio per {what} is {bound}"
    request = parse(requests[resource]) if resource in requests else _ZERO
    limit = parse(limits[resource]) if resource in limits else _ZERO
    if not request.nanos:
        return f"{head}, but no request is specified or request is 0"
    if not limit.nanos:
        return f"{head}, but no limit is specified or limit is 0"
    if limit.nanos * NANOS > bound.nanos * request.nanos:
        return f"{head}, but provided ratio is {limit.nanos / request.nanos:f}"
    return None
