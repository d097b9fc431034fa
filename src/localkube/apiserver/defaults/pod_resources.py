"""What a pod as a whole asks for: sums over its containers, pod-level defaults, its QoS class."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from kubeclient import quantity
from kubeclient.objects import Obj
from kubeclient.quantity import Quantity

_Amounts = dict[str, Quantity]


def pod_level_resources(spec: Obj) -> None:
    """`spec.resources`, where given in part, is completed from the containers'."""
    resources: Obj = spec["resources"]
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if limits or requests:
        for name, amount in aggregate(spec, "limits").items():
            if name.startswith("hugepages-") and name not in requests:
                limits.setdefault(name, amount.text)
    if limits:
        resources["limits"] = limits
        _default_requests(spec, limits, requests)


def aggregate(spec: Obj, what: str) -> _Amounts:
    """Limits or requests of all containers: at start (init containers run one by one, beside the
    sidecars started before them) or in service, whichever is more."""
    serving: _Amounts = {}
    for one in spec.get("containers", ()):
        _add(serving, one["resources"].get(what, {}))
    starting: _Amounts = {}
    sidecars: _Amounts = {}
    for one in spec.get("initContainers", ()):
        amounts = one["resources"].get(what, {})
        if one.get("restartPolicy") == "Always":
            _add(serving, amounts)
            _add(sidecars, amounts)
            _raise_to(starting, sidecars)
        else:
            together = dict(sidecars)
            _add(together, amounts)
            _raise_to(starting, together)
    _raise_to(serving, starting)
    return serving


def qos_class(spec: Obj) -> str:
    if "resources" in spec:
        return _qos((_asked(spec["resources"]),), pod_level=True)
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    parts = tuple([_asked(one["resources"]) for one in containers])
    judge = _known_qos if len(parts) <= _MOST_REMEMBERED else _qos
    return judge(parts, pod_level=False)


# Requests and limits as (resource, amount), and whether there are any limits at all.
_Asked: TypeAlias = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], bool]


def _asked(resources: Obj) -> _Asked:
    requests, limits = resources.get("requests") or _NONE, resources.get("limits") or _NONE
    return _compute(requests), _compute(limits), bool(limits)


_NONE: Mapping[str, str] = {}


def _compute(amounts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple([(name, amounts[name]) for name in ("cpu", "memory") if name in amounts])


def _qos(parts: tuple[_Asked, ...], *, pod_level: bool) -> str:
    requests: _Amounts = {}
    limits: _Amounts = {}
    guaranteed = True
    for requested, limited, has_limits in parts:
        _add(requests, _positive(requested))
        above_zero = _positive(limited)
        _add(limits, above_zero)
        # Of pod-level resources only limits that are there count.
        if len(above_zero) < 2 and (not pod_level or has_limits):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


# The pods of a cluster ask for few different amounts.
_known_qos = lru_cache(maxsize=1024)(_qos)
_MOST_REMEMBERED = 64  # containers of a pod: a pod of thousands must not stay in memory


def _positive(amounts: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: text for name, text in amounts if quantity.parse(text).nanos > 0}


def _default_requests(spec: Obj, limits: dict[str, str], requests: dict[str, str]) -> None:
    for name, amount in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, amount.text)
    for name, text in limits.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            requests.setdefault(name, text)
    if requests:
        spec["resources"]["requests"] = requests


def _add(total: _Amounts, amounts: Mapping[str, str]) -> None:
    for name, text in amounts.items():
        amount = quantity.parse(text)
        total[name] = quantity.add(total[name], amount) if name in total else amount


def _raise_to(total: _Amounts, least: _Amounts) -> None:
    for name, amount in least.items():
        if name not in total or total[name] < amount:
            total[name] = amount


# These can be given for the whole pod, and are then not summed.
_POD_LEVEL = ("cpu", "memory")


def pod_totals(spec: Obj, part: str) -> dict[str, str]:
    """What the pod as a whole asks for, as texts. `part`: "requests" or "limits"."""
    totals = {name: amount.text for name, amount in aggregate(spec, part).items()}
    whole = (spec.get("resources") or {}).get(part) or {}
    return totals | {
        name: text
        for name, text in whole.items()
        if name in _POD_LEVEL or name.startswith("hugepages-")
    }
