"""Rows of horizontal pod autoscalers, in either version."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.tables.durations import UNKNOWN
from localkube.apiserver.tables.texts import (
    NONE,
    UNSET,
    age,
    name,
    spec_of,
    status_of,
)

_SHOWN = 2
_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def scale(thing: Obj, now_s: float) -> list[Any]:
    """Of anything that has replicas: the answer of its /scale."""
    wanted, there = (thing[part].get("replicas", 0) for part in ("spec", "status"))
    return [thing["metadata"]["name"], wanted, there, age(thing, now_s)]


def horizontal_pod_autoscaler(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        name(thing),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _targets(_metrics(spec), _current_metrics(status)),
        UNSET if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(thing, now_s),
    ]


def _metrics(spec: Obj) -> list[Obj]:
    """Version 1 has one metric, of its own spelling."""
    percent = spec.get("targetCPUUtilizationPercentage")
    if percent is None:
        return spec.get("metrics") or []
    target = {"type": "Utilization", "averageUtilization": percent}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _current_metrics(status: Obj) -> list[Obj]:
    percent = status.get("currentCPUUtilizationPercentage")
    if percent is None:
        return status.get("currentMetrics") or []
    return [{"resource": {"name": "cpu", "current": {"averageUtilization": percent}}}]


def _targets(metrics: list[Obj], current: list[Obj]) -> str:
    if not metrics:
        return NONE
    texts = [
        _metric(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)
    ]
    shown = ", ".join(texts[:_SHOWN])
    return shown if len(texts) <= _SHOWN else f"{shown} + {len(texts) - _SHOWN} more..."


def _metric(metric: Obj, status: Obj) -> str:
    source = _SOURCES.get(metric.get("type", ""))
    if source is None:
        return "<unknown type>"
    wanted = metric.get(source) or {}
    target = wanted.get("target") or {}
    # A status that names another metric, or none yet, says nothing about this one.
    current = (status.get(source) or {}).get("current")
    if source in ("resource", "containerResource"):
        return f"{wanted.get('name', '')}: {_of_resource(target, current)}"
    return _of_value(target, current, average_marked=source != "pods")


def _of_resource(target: Obj, current: Obj | None) -> str:
    if "averageValue" in target:
        return f"{_quantity(current, 'averageValue')}/{target['averageValue']}"
    now, aim = (current or {}).get("averageUtilization"), target.get("averageUtilization")
    return f"{UNKNOWN if now is None else f'{now}%'}/{'<auto>' if aim is None else f'{aim}%'}"


def _of_value(target: Obj, current: Obj | None, *, average_marked: bool) -> str:
    if not average_marked:
        return f"{_quantity(current, 'averageValue')}/{target.get('averageValue', '0')}"
    if "averageValue" in target:
        now = (current or {}).get("averageValue", UNKNOWN)
        return f"{now}/{target['averageValue']} (avg)"
    return f"{_quantity(current, 'value')}/{target.get('value', '0')}"


def _quantity(current: Obj | None, field: str) -> str:
    if current is None:
        return UNKNOWN
    text: str = current.get(field, "0")
    return text
