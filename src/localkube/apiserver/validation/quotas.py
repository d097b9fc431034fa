"""ResourceQuotas and LimitRanges."""

from collections.abc import Mapping

from kubeclient import quantity
from kubeclient.objects import Obj
from kubeclient.quantity import Quantity
from localkube.apiserver.validation.errors import (
    IMMUTABLE,
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    required,
)
from localkube.apiserver.validation.formats import dns_subdomain, label_key
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.resources import (
    container_resource_name,
    is_quota_name,
    may_overcommit,
    quota_resource_name,
    resource_name,
    resource_value,
)
from localkube.apiserver.validation.selectors import NO_OPERATOR

_POD_COMPUTE = frozenset(
    f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in ("cpu", "memory")
)
_OF_PODS = _POD_COMPUTE | {"pods"}
_SCOPES: Mapping[str, frozenset[str]] = {
    "Terminating": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "NotBestEffort": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "CrossNamespacePodAffinity": _OF_PODS,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_PLAIN_SCOPES = (
    *("BestEffort", "NotBestEffort", "Terminating", "NotTerminating"),
    "CrossNamespacePodAffinity",
)
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating"))
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


def create_quota(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _quota_spec(errors, obj["spec"])
    _amounts(errors, obj.get("status", {}), "status")
    return errors


def update_quota(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _quota_spec(errors, new["spec"])
    after, before = new["spec"].get("scopes", []), old["spec"].get("scopes", [])
    if set(after) != set(before):
        errors.append(invalid("spec.scopes", after or None, IMMUTABLE))
    return errors


def quota_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _amounts(errors, new.get("status", {}), "status")
    return errors


def create_limit_range(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    seen: set[str] = set()
    for place, limit in enumerate(obj["spec"].get("limits", ())):
        path = f"spec.limits[{place}]"
        _limit_type(errors, limit["type"], seen, f"{path}.type")
        _limit(errors, limit, path)
    return errors


def update_limit_range(new: Obj, old: Obj) -> Errors:
    return create_limit_range(new)


def _amounts(errors: Errors, holder: Obj, path: str) -> None:
    for group in ("hard", "used"):
        for name, text in holder.get(group, {}).items():
            at = f"{path}.{group}[{name}]"
            quota_resource_name(errors, name, at)
            resource_value(errors, name, text, at)


def _quota_spec(errors: Errors, spec: Obj) -> None:
    _amounts(errors, {"hard": spec.get("hard", {})}, "spec")
    scopes = spec.get("scopes")
    if scopes:
        for scope in scopes:
            if scope not in _SCOPES:
                errors.append(invalid("spec.scopes", scopes, "unsupported scope"))
            for _ in _misfits(spec, scope):
                what = "unsupported scope applied to resource"
                errors.append(invalid("spec.scopes", scopes, what))
        _opposed(errors, scopes, scopes, "spec.scopes")
    if "scopeSelector" in spec:
        _scope_selector(errors, spec, "spec.scopeSelector.matchExpressions")


def _misfits(spec: Obj, scope: str) -> list[str]:
    allowed = _SCOPES.get(scope)
    if allowed is None:
        return []
    return [name for name in spec.get("hard", ()) if is_quota_name(name) and name not in allowed]


def _opposed(errors: Errors, found: list[str], shown: list[str] | None, path: str) -> None:
    for one, other in _OPPOSITES:
        if one in found and other in found:
            errors.append(invalid(path, shown, "conflicting scopes"))


def _scope_selector(errors: Errors, spec: Obj, path: str) -> None:
    found = []
    for requirement in spec["scopeSelector"].get("matchExpressions", ()):
        scope, operator = requirement["scopeName"], requirement["operator"]
        found.append(scope)
        if scope not in _SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        for _ in _misfits(spec, scope):
            errors.append(
                invalid(path, spec["scopeSelector"], "unsupported scope applied to resource")
            )
        if scope in _PLAIN_SCOPES and operator != "Exists":
            what = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating,"
                " ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort,"
                " ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            errors.append(invalid(f"{path}.operator", operator, what))
        _scope_values(errors, operator, requirement.get("values", []), path)
    _opposed(errors, found, spec.get("scopes"), path)


def _scope_values(errors: Errors, operator: str, values: list[str], path: str) -> None:
    if operator in ("In", "NotIn"):
        if not values:
            what = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            errors.append(required(f"{path}.values", what))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            what = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
            errors.append(invalid(f"{path}.values", values, what))
    else:
        errors.append(invalid(f"{path}.operator", operator, NO_OPERATOR))


def _limit_type(errors: Errors, kind: str, seen: set[str], path: str) -> None:
    complaints = label_key(kind)
    invalid_each(errors, path, kind, complaints)
    if not complaints and "/" not in kind and kind not in _LIMIT_TYPES:
        what = "must be a standard limit type or fully qualified"
        errors.append(invalid(path, kind, what))
    if kind in seen:
        errors.append(duplicate(path, kind))
    seen.add(kind)


def _limit(errors: Errors, limit: Obj, path: str) -> None:
    rule = container_resource_name if limit["type"] in ("Pod", "Container") else resource_name
    groups = ["max", "min", "maxLimitRequestRatio"]
    if limit["type"] == "Pod":
        for group in ("default", "defaultRequest"):
            if limit.get(group):
                what = "may not be specified when `type` is 'Pod'"
                errors.append(forbidden_field(f"{path}.{group}", what))
    else:
        groups[2:2] = ["default", "defaultRequest"]
    for group in groups:
        if group == "maxLimitRequestRatio":
            _claim_limits(errors, limit, path)
        for name in limit.get(group, ()):
            rule(errors, name, f"{path}.{group}[{name}]")
    names = dict.fromkeys(name for group in groups for name in limit.get(group, ()))
    for name in names:
        amounts = {
            group: quantity.parse(limit[group][name])
            for group in groups
            if name in limit.get(group, {})
        }
        _relations(errors, name, amounts, path)


def _claim_limits(errors: Errors, limit: Obj, path: str) -> None:
    bounds = (*limit.get("min", ()), *limit.get("max", ()))
    if limit["type"] == "PersistentVolumeClaim" and "storage" not in bounds:
        what = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", what))


_REQUEST = "defaultRequest"
# What may not be greater, than what, whose path and whose value are shown, and the words.
_ORDERED = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    ("min", _REQUEST, _REQUEST, _REQUEST, "min value {} is greater than default request value {}"),
    (_REQUEST, "max", _REQUEST, _REQUEST, "default request value {} is greater than max value {}"),
    (
        *(_REQUEST, "default", _REQUEST, _REQUEST),
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _relations(errors: Errors, name: str, amounts: dict[str, Quantity], path: str) -> None:
    for low, high, at, shown, text in _ORDERED:
        if low in amounts and high in amounts and amounts[low] > amounts[high]:
            what = text.format(amounts[low], amounts[high])
            errors.append(invalid(f"{path}.{at}[{name}]", amounts[shown].text, what))
    ratio = amounts.get("maxLimitRequestRatio")
    if ratio is not None:
        _ratio(errors, ratio, amounts, f"{path}.maxLimitRequestRatio[{name}]")
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    if default is None or request is None or may_overcommit(name):
        return
    if default != request:
        what = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", request.text, what))


def _ratio(errors: Errors, ratio: Quantity, amounts: dict[str, Quantity], path: str) -> None:
    if ratio.nanos < quantity.NANOS:
        errors.append(invalid(path, ratio.text, f"ratio {ratio} is less than 1"))
    low, high = amounts.get("min"), amounts.get("max")
    if low is None or high is None or low.nanos == 0:
        return
    possible = high.nanos / low.nanos
    if ratio.nanos / quantity.NANOS > possible:
        what = f"ratio {ratio} is greater than max/min = {possible:.6f}"
        errors.append(invalid(path, ratio.text, what))
