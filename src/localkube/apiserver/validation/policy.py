"""Disruption budgets, priorities, leases, runtime classes: small kinds of few rules."""

from kubeclient.objects import Obj
from localkube.apiserver.validation.affinity import tolerations
from localkube.apiserver.validation.apps import at_most_all, count_or_percent
from localkube.apiserver.validation.conditions import conditions
from localkube.apiserver.validation.errors import (
    NEGATIVE,
    Errors,
    duplicate,
    forbidden_field,
    invalid,
    invalid_each,
    not_negative,
    not_supported,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, label_key
from localkube.apiserver.validation.metadata import (
    labels,
    object_meta,
    object_meta_update,
    own_meta,
    own_meta_update,
)
from localkube.apiserver.validation.pod_spec import preemption_policy
from localkube.apiserver.validation.resources import container_resources
from localkube.apiserver.validation.selectors import label_selector

_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_PRIORITIES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def create_budget(obj: Obj) -> Errors:
    errors: Errors = []
    spec = obj["spec"]
    bounds = ("minAvailable", "maxUnavailable")
    if all(name in spec for name in bounds):
        what = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid("spec", spec, what))
    for name in bounds:
        if name in spec:
            count_or_percent(errors, spec[name], f"spec.{name}")
            at_most_all(errors, spec[name], f"spec.{name}")
    label_selector(errors, spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        path = "spec.unhealthyPodEvictionPolicy"
        errors.append(not_supported(path, policy, _EVICTION_POLICIES))
    return errors


def update_budget(new: Obj, old: Obj) -> Errors:
    return create_budget(new)


def budget_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    status = new.get("status", {})
    conditions(errors, status.get("conditions", ()), "status.conditions")
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        not_negative(errors, status.get(name, 0), f"status.{name}")
    return errors


def create_priority(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    name, value = obj["metadata"].get("name", ""), obj["value"]
    if name.startswith("system-"):
        why = _not_a_system_priority(obj, name, value)
        if why:
            what = (
                "priority class names with 'system-' prefix are reserved for system use only."
                f" error: {why}"
            )
            errors.append(forbidden_field("metadata.name", what))
    elif value > _HIGHEST_PRIORITY:
        what = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        errors.append(forbidden_field("value", what))
    preemption_policy(errors, obj["preemptionPolicy"], "preemptionPolicy")
    return errors


def update_priority(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    if new["value"] != old["value"]:
        errors.append(forbidden_field("value", "may not be changed in an update."))
    name = "preemptionPolicy"
    unchanged(errors, new.get(name), old.get(name), name)
    return errors


def create_lease(obj: Obj) -> Errors:
    errors: Errors = []
    object_meta(errors, obj["metadata"], dns_subdomain)
    _lease_spec(errors, obj["spec"])
    return errors


def update_lease(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    object_meta_update(errors, new["metadata"], old["metadata"])
    _lease_spec(errors, new["spec"])
    return errors


def create_runtime_class(obj: Obj) -> Errors:
    errors: Errors = []
    object_meta(errors, obj["metadata"], dns_subdomain, namespaced=False)
    invalid_each(errors, "handler", obj["handler"], dns_label(obj["handler"]))
    if "overhead" in obj:
        limits = obj["overhead"].get("podFixed", {})
        container_resources(errors, {"limits": limits}, (), "overhead")
    if "scheduling" in obj:
        _runtime_scheduling(errors, obj["scheduling"])
    return errors


def update_runtime_class(new: Obj, old: Obj) -> Errors:
    errors = create_runtime_class(new)
    object_meta_update(errors, new["metadata"], old["metadata"])
    unchanged(errors, new["handler"], old["handler"], "handler")
    return errors


def _not_a_system_priority(obj: Obj, name: str, value: int) -> str:
    if name not in _SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_PRIORITIES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_PRIORITIES[name]}"
    if obj.get("globalDefault"):
        return f"globalDefault of {name} PriorityClass must be false"
    return ""


def _lease_spec(errors: Errors, spec: Obj) -> None:
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, NEGATIVE))
    strategy = spec.get("strategy")
    if strategy is not None:
        # Twice in the path, as in Kubernetes.
        path = "spec.strategy.strategy"
        if "/" in strategy:
            invalid_each(errors, path, strategy, label_key(strategy))
        elif strategy != "OldestEmulationVersion":
            errors.append(not_supported(path, strategy, ("OldestEmulationVersion",)))
    if spec.get("preferredHolder") and not strategy:
        what = "may only be specified if `strategy` is defined"
        errors.append(forbidden_field("spec.preferredHolder", what))


def _runtime_scheduling(errors: Errors, scheduling: Obj) -> None:
    labels(errors, scheduling.get("nodeSelector", {}), "scheduling.nodeSelector")
    listed, path = scheduling.get("tolerations", ()), "scheduling.tolerations"
    tolerations(errors, listed, path)
    seen: set[tuple[str, ...]] = set()
    for place, toleration in enumerate(listed):
        key = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(f"{path}[{place}]", toleration))
        seen.add(key)
