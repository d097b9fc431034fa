"""Defaults of what governs the API itself: API services, flow schemas and priority levels."""

from kubeclient.objects import Obj

_PRECEDENCE = 1000
_SHARES = 30


def api_service(value: Obj) -> None:
    if "service" in value["spec"]:
        value["spec"]["service"].setdefault("port", 443)


def flow_schema(value: Obj) -> None:
    value["spec"]["matchingPrecedence"] = value["spec"]["matchingPrecedence"] or _PRECEDENCE


def priority_level(value: Obj) -> None:
    spec = value["spec"]
    if "exempt" in spec:
        _shares(spec["exempt"], 0)
    if "limited" in spec:
        _shares(spec["limited"], _SHARES)
        queuing = spec["limited"]["limitResponse"].get("queuing")
        if queuing is not None:
            for key, default in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                queuing[key] = queuing[key] or default


def _shares(part: Obj, default: int) -> None:
    part.setdefault("nominalConcurrencyShares", default)
    part.setdefault("lendablePercent", 0)
