"""Defaults of HorizontalPodAutoscalers."""

from kubeclient.objects import Obj

CPU_PERCENT = 80
_PERIOD_SECONDS = 15


def autoscaler_v1(value: Obj) -> None:
    value["spec"].setdefault("minReplicas", 1)


def autoscaler_v2(value: Obj) -> None:
    spec: Obj = value["spec"]
    spec.setdefault("minReplicas", 1)
    if "metrics" not in spec:
        spec["metrics"] = [cpu_metric(CPU_PERCENT)]
    if "behavior" in spec:
        behavior: Obj = spec["behavior"]
        behavior["scaleUp"] = _scale_up() | behavior.get("scaleUp", {})
        behavior["scaleDown"] = _scale_down() | behavior.get("scaleDown", {})


def cpu_metric(percent: int) -> Obj:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _scale_up() -> Obj:
    policies = [_policy("Pods", 4), _policy("Percent", 100)]
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies}


def _scale_down() -> Obj:
    return {"selectPolicy": "Max", "policies": [_policy("Percent", 100)]}


def _policy(kind: str, value: int) -> Obj:
    return {"type": kind, "value": value, "periodSeconds": _PERIOD_SECONDS}
