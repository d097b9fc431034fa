"""HorizontalPodAutoscalers between v1 and v2 (the stored version).

v1 knows one metric, CPU utilisation. All else rides along in annotations, as in Kubernetes: a v1
client that reads, changes and writes an autoscaler loses nothing.
"""

from typing import Any

import orjson

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.defaults.autoscaling import CPU_PERCENT, cpu_metric

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS = f"{_PREFIX}metrics"
_CURRENT_METRICS = f"{_PREFIX}current-metrics"
_CONDITIONS = f"{_PREFIX}conditions"
_BEHAVIOR = f"{_PREFIX}behavior"
_DROPPED = tuple(f"{_PREFIX}scale-{direction}-tolerance" for direction in ("up", "down"))

# Where a metric's parts stand: v1's name, and the path to them in v2. "target" is "current" in
# statuses. The older form said the kind of target by the name of the field that holds its value.
_PARTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "resource": (("name", ("name",)),),
    "containerResource": (("name", ("name",)), ("container", ("container",))),
    "pods": (("metricName", ("metric", "name")), ("selector", ("metric", "selector"))),
    "object": (
        ("target", ("describedObject",)),
        ("metricName", ("metric", "name")),
        ("selector", ("metric", "selector")),
    ),
    "external": (
        ("metricName", ("metric", "name")),
        ("metricSelector", ("metric", "selector")),
    ),
}
_VALUE = ("{}Value", "value", "Value")
_AVERAGES = (
    ("{}AverageUtilization", "averageUtilization", "Utilization"),
    ("{}AverageValue", "averageValue", "AverageValue"),
)
_VALUES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "resource": _AVERAGES,
    "containerResource": _AVERAGES,
    "pods": _AVERAGES,
    "object": (("averageValue", "averageValue", "AverageValue"), _VALUE),
    "external": (_VALUE, *_AVERAGES),
}


def autoscaler_to_v1(obj: Obj) -> Obj:
    spec, status = dict(obj["spec"]), dict(obj.get("status", {}))
    notes: dict[str, Any] = {}
    metrics = spec.pop("metrics", [])
    others = [metric for metric in metrics if _cpu_percent(metric) is None]
    percents = [percent for metric in metrics if (percent := _cpu_percent(metric)) is not None]
    if percents:
        spec["targetCPUUtilizationPercentage"] = percents[0]
    if others:
        notes[_METRICS] = [_metric_to_v1(metric, "target") for metric in others]
    if "behavior" in spec:
        notes[_BEHAVIOR] = _exported(spec.pop("behavior"))
    current = status.pop("currentMetrics", [])
    if current:
        notes[_CURRENT_METRICS] = [_metric_to_v1(metric, "current") for metric in current]
    for metric in current:
        percent = _percent(metric, "current")
        if percent is not None:
            status["currentCPUUtilizationPercentage"] = percent
    if status.get("conditions"):
        notes[_CONDITIONS] = status.pop("conditions")
    status.setdefault("currentReplicas", 0)
    made = _with_notes(obj, {key: orjson.dumps(value).decode() for key, value in notes.items()})
    return made | {"apiVersion": "autoscaling/v1", "spec": spec, "status": status}


def autoscaler_to_v2(obj: Obj) -> Obj:
    spec, status = dict(obj["spec"]), dict(obj.get("status", {}))
    annotations = obj["metadata"].get("annotations", {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = _metrics(annotations, _METRICS, "target")
    if percent is not None:
        metrics.append(cpu_metric(percent))
    spec["metrics"] = metrics or [cpu_metric(CPU_PERCENT)]
    behavior = _behavior(annotations)
    if behavior:
        spec["behavior"] = behavior
    current = _metrics(annotations, _CURRENT_METRICS, "current")
    percent = status.pop("currentCPUUtilizationPercentage", None)
    if percent is not None and not current:
        resource = {"name": "cpu", "current": {"averageUtilization": percent}}
        current = [{"type": "Resource", "resource": resource}]
    if current:
        status["currentMetrics"] = current
    conditions = _loaded(annotations, _CONDITIONS, list)
    if conditions and all(_is_condition(condition) for condition in conditions):
        status["conditions"] = conditions
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return _with_notes(obj, {}) | {"apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def _with_notes(obj: Obj, notes: dict[str, str]) -> Obj:
    """A copy whose metadata carries these annotations of ours, and no others of ours."""
    ours = (_METRICS, _CURRENT_METRICS, _CONDITIONS, _BEHAVIOR, *_DROPPED)
    old = obj["metadata"].get("annotations", {})
    annotations = {key: value for key, value in old.items() if key not in ours} | notes
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return obj | {"metadata": metadata}


def _cpu_percent(metric: Obj) -> int | None:
    return _percent(metric, "target")


def _percent(metric: Obj, what: str) -> int | None:
    resource = metric.get("resource", {})
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    percent: int | None = resource.get(what, {}).get("averageUtilization")
    return percent


def _metric_to_v1(metric: Obj, what: str) -> Obj:
    made: Obj = {"type": metric["type"]}
    for source, parts in _PARTS.items():
        if source not in metric:
            continue
        old: Obj = {}
        for name, path in parts:
            part: Any = metric[source]
            for step in path:
                part = part.get(step) if part else None
            if part:
                old[name] = part
        values = metric[source].get(what, {})
        for name, field, _ in _VALUES[source]:
            if field in values:
                old[name.format(what)] = values[field]
        made[source] = old
    return made


def _metric_to_v2(metric: Obj, what: str) -> Obj:
    made: Obj = {"type": metric.get("type", "")}
    for source, parts in _PARTS.items():
        if not isinstance(metric.get(source), dict):
            continue
        new: Obj = {}
        for name, path in parts:
            if name in metric[source]:
                inner = new
                for step in path[:-1]:
                    inner = inner.setdefault(step, {})
                inner[path[-1]] = metric[source][name]
        new[what] = _target(metric[source], source, what)
        made[source] = new
    return made


def _target(old: Obj, source: str, what: str) -> Obj:
    target: Obj = {}
    for name, field, kind in _VALUES[source]:
        value = old.get(name.format(what))
        # The older form has no pointers: "0" stands for a value that is not there.
        if value is not None and value != "0":
            target.setdefault("type", kind)
            target[field] = value
    if what == "current":
        target.pop("type", None)
    else:
        target.setdefault("type", "Value")
    return target


def _loaded(annotations: dict[str, str], key: str, kind: type) -> Any:
    """What an annotation holds; nothing, if somebody has written nonsense into it."""
    try:
        value = orjson.loads(annotations.get(key, "null"))
    except orjson.JSONDecodeError:
        return kind()
    return value if isinstance(value, kind) else kind()


def _metrics(annotations: dict[str, str], key: str, what: str) -> list[Obj]:
    metrics = _loaded(annotations, key, list)
    if not all(_is_metric(metric) for metric in metrics):
        return []
    return [_metric_to_v2(metric, what) for metric in metrics]


def _is_metric(metric: Any) -> bool:
    """Whether names are texts, selectors objects, and amounts quantities."""
    if not isinstance(metric, dict) or not isinstance(metric.get("type"), str):
        return False
    for source in _PARTS:
        old = metric.get(source, {})
        if not isinstance(old, dict):
            return False
        for name, value in old.items():
            if name in ("selector", "metricSelector", "target"):
                valid = isinstance(value, dict)
            elif name.endswith("Utilization"):
                valid = isinstance(value, int)
            else:
                valid = isinstance(value, str) and (not name.endswith("Value") or _parses(value))
            if not valid:
                return False
    return True


def _is_condition(condition: Any) -> bool:
    return isinstance(condition, dict) and all(
        isinstance(value, str) for value in condition.values() if value is not None
    )


def _parses(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.ParseError:
        return False
    return True


def _behavior(annotations: dict[str, str]) -> Obj:
    behavior = _imported(_loaded(annotations, _BEHAVIOR, dict))
    return behavior if all(_is_rules(rules) for rules in behavior.values()) else {}


def _is_rules(rules: Any) -> bool:
    if not isinstance(rules, dict):
        return False
    policies = rules.get("policies", [])
    return isinstance(policies, list) and all(
        isinstance(value, str if name in ("selectPolicy", "type") else int)
        for part in [rules, *policies]
        if isinstance(part, dict)
        for name, value in part.items()
        if name not in ("policies", "tolerance")
    )


def _exported(value: Any) -> Any:
    """With Go's field names: the annotation is written from a type without JSON names."""
    if isinstance(value, dict):
        return {key[0].upper() + key[1:]: _exported(inner) for key, inner in value.items()}
    return [_exported(inner) for inner in value] if isinstance(value, list) else value


def _imported(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key[0].lower() + key[1:]: _imported(inner)
            for key, inner in value.items()
            if key and inner is not None
        }
    return [_imported(inner) for inner in value] if isinstance(value, list) else value
