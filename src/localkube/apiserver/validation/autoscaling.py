"""HorizontalPodAutoscalers, in their stored version (v2)."""

from collections.abc import Callable, Mapping

from kubeclient import quantity
from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    NEGATIVE,
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    not_negative,
    not_supported,
    required,
)
from localkube.apiserver.validation.formats import (
    dns_label,
    dns_subdomain,
    path_segment,
)
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.resources import container_resource_name

_PERIOD_MAX = 1800
_WINDOW_MAX = 3600
_TYPES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def create(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _spec(errors, obj["spec"], None)
    return errors


def update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _spec(errors, new["spec"], old["spec"])
    return errors


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    for name in ("currentReplicas", "desiredReplicas"):
        not_negative(errors, new.get("status", {}).get(name, 0), f"status.{name}")
    return errors


def _spec(errors: Errors, spec: Obj, old: Obj | None) -> None:
    least, most = spec["minReplicas"], spec["maxReplicas"]
    lowest = 0 if old is not None and old["minReplicas"] == 0 else 1
    if least < lowest:
        what = f"must be greater than or equal to {lowest}"
        errors.append(invalid("spec.minReplicas", least, what))
    if most < 1:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if most < least:
        what = "must be greater than or equal to `minReplicas`"
        errors.append(invalid("spec.maxReplicas", most, what))
    _target_ref(errors, spec["scaleTargetRef"], (old or {}).get("scaleTargetRef", {}))
    metrics = spec.get("metrics", ())
    for place, metric in enumerate(metrics):
        _metric(errors, metric, f"spec.metrics[{place}]")
    if least == 0 and not any(metric["type"] in ("Object", "External") for metric in metrics):
        what = (
            "must specify at least one Object or External metric to support scaling to zero"
            " replicas"
        )
        errors.append(forbidden_field("spec.metrics", what))
    for name in ("scaleUp", "scaleDown"):
        if name in spec.get("behavior", {}):
            _rules(errors, spec["behavior"][name], f"spec.behavior.{name}")


def _target_ref(errors: Errors, reference: Obj, old: Obj) -> None:
    same = all(reference.get(name) == old.get(name) for name in ("apiVersion", "kind"))
    core = reference["kind"] == "ReplicationController"
    _reference(errors, reference, "spec.scaleTargetRef")
    if not old or not same:
        _api_version(errors, reference, "spec.scaleTargetRef", any_group=core)


def _reference(errors: Errors, reference: Obj, path: str) -> None:
    for name in ("kind", "name"):
        if not reference[name]:
            errors.append(required(f"{path}.{name}"))
        else:
            complaints = path_segment(reference[name])
            invalid_each(errors, f"{path}.{name}", reference[name], complaints)


def _api_version(errors: Errors, reference: Obj, path: str, *, any_group: bool) -> None:
    version = reference.get("apiVersion", "")
    why = ""
    if version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
    elif not any_group and not version.rpartition("/")[0]:
        why = "apiVersion must specify API group"
    if why:
        errors.append(invalid(f"{path}.apiVersion", version, why))


def _rules(errors: Errors, rules: Obj, path: str) -> None:
    window, at = rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        errors.append(invalid(at, window, "must be greater than or equal to zero"))
    if window is not None and window > _WINDOW_MAX:
        errors.append(invalid(at, window, f"must be less than or equal to {_WINDOW_MAX}"))
    policies = ("Disabled", "Max", "Min")
    if rules.get("selectPolicy", "Max") not in policies:
        errors.append(not_supported(f"{path}.selectPolicy", rules["selectPolicy"], policies))
    if not rules.get("policies"):
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for place, policy in enumerate(rules.get("policies", ())):
        _policy(errors, policy, f"{path}.policies[{place}]")
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.parse(tolerance).nanos < 0:
        errors.append(invalid(f"{path}.tolerance", tolerance, NEGATIVE))


def _policy(errors: Errors, policy: Obj, path: str) -> None:
    if policy["type"] not in ("Percent", "Pods"):
        errors.append(not_supported(f"{path}.type", policy["type"], ("Percent", "Pods")))
    for name in ("value", "periodSeconds"):
        if policy[name] <= 0:
            errors.append(invalid(f"{path}.{name}", policy[name], "must be greater than zero"))
    if policy["periodSeconds"] > _PERIOD_MAX:
        what = f"must be less than or equal to {_PERIOD_MAX}"
        errors.append(invalid(f"{path}.periodSeconds", policy["periodSeconds"], what))


def _metric(errors: Errors, metric: Obj, path: str) -> None:
    kind = metric["type"]
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _TYPES:
        errors.append(not_supported(f"{path}.type", kind, tuple(_TYPES)))
    found = [name for name in _SOURCES if name in metric]
    if found:
        _SOURCES[found[0]](errors, metric[found[0]], f"{path}.{found[0]}")
    expected = _TYPES.get(kind)
    if expected is None:
        errors.append(not_supported(f"{path}.type", kind, tuple(_TYPES)))
    elif expected not in metric:
        what = "must populate information for the given metric source"
        errors.append(required(f"{path}.{expected}", what))
    if len(found) != 1:
        for name in found:
            if name != expected:
                what = "must populate the given metric source only"
                errors.append(forbidden_field(f"{path}.{name}", what))


def _object(errors: Errors, source: Obj, path: str) -> None:
    described = source["describedObject"]
    _reference(errors, described, f"{path}.describedObject")
    _api_version(errors, described, f"{path}.describedObject", any_group=True)
    _identifier(errors, source["metric"], f"{path}.metric")
    _target(errors, source["target"], f"{path}.target")
    if "value" not in source["target"] and "averageValue" not in source["target"]:
        what = "must set either a target value or averageValue"
        errors.append(required(f"{path}.target.averageValue", what))


def _external(errors: Errors, source: Obj, path: str) -> None:
    target = source["target"]
    _identifier(errors, source["metric"], f"{path}.metric")
    _target(errors, target, f"{path}.target")
    if "value" not in target and "averageValue" not in target:
        what = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.target.averageValue", what))
    if "value" in target and "averageValue" in target:
        what = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden_field(f"{path}.target.value", what))


def _pods(errors: Errors, source: Obj, path: str) -> None:
    _identifier(errors, source["metric"], f"{path}.metric")
    _target(errors, source["target"], f"{path}.target")
    if "averageValue" not in source["target"]:
        what = "must specify a positive target averageValue"
        errors.append(required(f"{path}.target.averageValue", what))


def _resource(errors: Errors, source: Obj, path: str) -> None:
    if not source["name"]:
        errors.append(required(f"{path}.name", "must specify a resource name"))
    _resource_target(errors, source["target"], f"{path}.target")


def _container_resource(errors: Errors, source: Obj, path: str) -> None:
    name, container = source["name"], source["container"]
    if not name:
        errors.append(required(f"{path}.name", "must specify a resource name"))
    else:
        container_resource_name(errors, name, f"{path}.name")
    if not container:
        errors.append(required(f"{path}.container", "must specify a container"))
    else:
        invalid_each(errors, f"{path}.container", container, dns_label(container))
    _resource_target(errors, source["target"], f"{path}.target")


def _resource_target(errors: Errors, target: Obj, path: str) -> None:
    _target(errors, target, path)
    if "averageUtilization" not in target and "averageValue" not in target:
        what = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.averageUtilization", what))
    if "averageUtilization" in target and "averageValue" in target:
        what = "may not set both a target raw value and a target utilization"
        errors.append(forbidden_field(f"{path}.averageValue", what))


def _target(errors: Errors, target: Obj, path: str) -> None:
    kind = target["type"]
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        what = "must be either Utilization, Value, or AverageValue"
        errors.append(invalid(f"{path}.type", kind, what))
    for name in ("value", "averageValue"):
        if name in target and quantity.parse(target[name]).nanos <= 0:
            errors.append(invalid(f"{path}.{name}", target[name], "must be positive"))
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        errors.append(invalid(f"{path}.averageUtilization", percent, "must be greater than 0"))


def _identifier(errors: Errors, metric: Obj, path: str) -> None:
    if not metric["name"]:
        errors.append(required(f"{path}.name", "must specify a metric name"))
    else:
        invalid_each(errors, f"{path}.name", metric["name"], path_segment(metric["name"]))


_SOURCES: Mapping[str, Callable[[Errors, Obj, str], None]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}
