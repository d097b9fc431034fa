"""What a pod as a whole asks for: sums over its containers, pod-level defaults, its QoS class."""

from collections.abc import Mapping

from gpupool.contract.objects import Obj
from gpupool.core import quantity
from gpupool.core.quantity import Quantity

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
    requests: _Amounts = {}
    limits: _Amounts = {}
    guaranteed = True
    if "resources" in spec:
        parts = [spec["resources"]]
    else:
        containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
        parts = [one["resources"] for one in containers]
    for resources in parts:
        _add(requests, _compute(resources.get("requests")))
        limited = _compute(resources.get("limits"))
        _add(limits, limited)
        # Of pod-level resources only limits that are there count.
        if len(limited) < 2 and ("resources" not in spec or resources.get("limits")):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _compute(amounts: Mapping[str, str] | None) -> dict[str, str]:
    if not amounts:
        return {}
    return {
        name: amounts[name]
        for name in ("cpu", "memory")
        if name in amounts and quantity.parse(amounts[name]).nanos > 0
    }


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
