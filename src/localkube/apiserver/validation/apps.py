"""Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions."""

import re

from kubeclient.bounded_numbers import first_digits
from kubeclient.objects import Obj
from localkube.apiserver.validation import counts
from localkube.apiserver.validation.claims import claim_spec
from localkube.apiserver.validation.errors import (
    Errors,
    forbidden_field,
    invalid,
    invalid_each,
    not_negative,
    not_supported,
    required,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, percent
from localkube.apiserver.validation.metadata import (
    annotations,
    labels,
    own_meta,
    own_meta_update,
)
from localkube.apiserver.validation.pod_annotations import pod_annotations
from localkube.apiserver.validation.pods import template
from localkube.apiserver.validation.selectors import (
    is_empty,
    is_usable,
    label_selector,
    selects,
)

_is_number = re.compile("[+-]?[0-9]{1,18}", re.ASCII).fullmatch
NO_MATCH = "`selector` does not match template `labels`"
_STATEFUL_CHANGES = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
    " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and"
    " 'minReadySeconds' are forbidden"
)
_MAY_CHANGE_STATEFUL = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)


def create_deployment(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _deployment_spec(errors, obj["spec"])
    return errors


def update_deployment(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _deployment_spec(errors, new["spec"])
    same_selector(errors, new["spec"], old["spec"])
    return errors


def create_replica_set(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _replica_set_spec(errors, obj["spec"])
    return errors


def update_replica_set(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _replica_set_spec(errors, new["spec"])
    same_selector(errors, new["spec"], old["spec"])
    return errors


def create_daemon_set(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _daemon_set_spec(errors, obj["spec"])
    return errors


def update_daemon_set(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    same_selector(errors, new["spec"], old["spec"])
    _daemon_set_spec(errors, new["spec"])
    return errors


def create_stateful_set(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_label)
    spec = obj["spec"]
    _stateful_policies(errors, spec)
    for place, claim in enumerate(spec.get("volumeClaimTemplates", ())):
        claim_spec(errors, claim["spec"], f"spec.volumeClaimTemplates[{place}].spec")
    _stateful_counts(errors, spec)
    service = spec.get("serviceName")
    if service:
        invalid_each(errors, "spec.serviceName", service, dns_label(service))
    _stateful_template(errors, spec)
    return errors


def update_stateful_set(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    spec = new["spec"]
    _stateful_policies(errors, spec)
    _stateful_counts(errors, spec)
    _stateful_template(errors, spec)
    fixed = (spec.keys() | old["spec"].keys()).difference(_MAY_CHANGE_STATEFUL)
    if any(spec.get(name) != old["spec"].get(name) for name in fixed):
        errors.append(forbidden_field("spec", _STATEFUL_CHANGES))
    return errors


def create_revision(obj: Obj) -> Errors:
    errors: Errors = []
    _revision(errors, obj)
    data = obj.get("data")
    if data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(required("data", "data must be a valid JSON object"))
    return errors


def update_revision(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _revision(errors, new)
    unchanged(errors, new.get("data"), old.get("data"), "data")
    return errors


def deployment_status(new: Obj, old: Obj) -> Errors:
    return counts.status_update(new, old, counts.DEPLOYMENT)


def replica_set_status(new: Obj, old: Obj) -> Errors:
    return counts.status_update(new, old, counts.REPLICA_SET)


def daemon_set_status(new: Obj, old: Obj) -> Errors:
    return counts.status_update(new, old, counts.DAEMON_SET)


def stateful_set_status(new: Obj, old: Obj) -> Errors:
    return counts.status_update(new, old, counts.STATEFUL_SET)


def same_selector(errors: Errors, new: Obj, old: Obj) -> None:
    if new.get("selector") != old.get("selector"):
        errors.append(invalid("spec.selector", new.get("selector"), "field is immutable"))


def count_or_percent(errors: Errors, value: int | str, path: str) -> None:
    if isinstance(value, int):
        not_negative(errors, value, path)
    else:
        invalid_each(errors, path, value, percent(value))


def at_most_all(errors: Errors, value: int | str, path: str) -> None:
    if isinstance(value, str) and not percent(value) and amount(value) > 100:
        errors.append(invalid(path, value, "must not be greater than 100%"))


def amount(value: int | str) -> int:
    """The number in it: of "25%", 25; of what is no percentage, 0."""
    if isinstance(value, int):
        return value
    if not percent(value):
        return first_digits(value[:-1])
    return int(value) if _is_number(value) else 0


def _selector(errors: Errors, spec: Obj, kind: str) -> bool:
    """Whether the selector can be held against the template."""
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
        return True
    label_selector(errors, selector, "spec.selector")
    if is_empty(selector):
        what = f"empty selector is invalid for {kind}"
        errors.append(invalid("spec.selector", selector, what))
    return is_usable(selector)


def _template_of(errors: Errors, spec: Obj, value: Obj, owner: str) -> None:
    _template_selected(errors, spec)
    template(errors, value, "spec.template")
    always_running(errors, value["spec"], owner)


def _template_selected(errors: Errors, spec: Obj) -> None:
    """No selector selects nothing; an empty one is complained about elsewhere."""
    selector, found = spec.get("selector"), spec["template"]["metadata"].get("labels", {})
    if selector is None or (not is_empty(selector) and not selects(selector, found)):
        errors.append(invalid("spec.template.metadata.labels", found or None, NO_MATCH))


def always_running(errors: Errors, spec: Obj, owner: str) -> None:
    path = "spec.template.spec"
    if spec["restartPolicy"] != "Always":
        at = f"{path}.restartPolicy"
        errors.append(not_supported(at, spec["restartPolicy"], ("Always",)))
    if "activeDeadlineSeconds" in spec:
        what = f"activeDeadlineSeconds in {owner} is not Supported"
        errors.append(forbidden_field(f"{path}.activeDeadlineSeconds", what))


def _deployment_spec(errors: Errors, spec: Obj) -> None:
    not_negative(errors, spec["replicas"], "spec.replicas")
    if _selector(errors, spec, "deployment"):
        _template_of(errors, spec, spec["template"], "ReplicaSet")
    else:
        errors.append(invalid("spec.selector", spec["selector"], "invalid label selector"))
    _deployment_strategy(errors, spec["strategy"], "spec.strategy")
    ready = spec.get("minReadySeconds", 0)
    not_negative(errors, ready, "spec.minReadySeconds")
    not_negative(errors, spec.get("revisionHistoryLimit", 0), "spec.revisionHistoryLimit")
    deadline = spec["progressDeadlineSeconds"]
    not_negative(errors, deadline, "spec.progressDeadlineSeconds")
    if deadline <= ready:
        what = "must be greater than minReadySeconds"
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, what))


def _deployment_strategy(errors: Errors, strategy: Obj, path: str) -> None:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            what = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden_field(f"{path}.rollingUpdate", what))
    elif kind == "RollingUpdate":
        assert rolling is not None  # a default
        missing, surge = rolling["maxUnavailable"], rolling["maxSurge"]
        at = f"{path}.rollingUpdate.maxUnavailable"
        count_or_percent(errors, missing, at)
        count_or_percent(errors, surge, f"{path}.rollingUpdate.maxSurge")
        if amount(missing) == 0 and amount(surge) == 0:
            errors.append(invalid(at, missing, "may not be 0 when `maxSurge` is 0"))
        at_most_all(errors, missing, at)
    else:
        errors.append(not_supported(path, strategy, ("Recreate", "RollingUpdate")))


def _replica_set_spec(errors: Errors, spec: Obj) -> None:
    not_negative(errors, spec["replicas"], "spec.replicas")
    not_negative(errors, spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    if _selector(errors, spec, "deployment"):
        _template_of(errors, spec, spec["template"], "ReplicaSet")
    else:
        errors.append(invalid("spec.selector", spec["selector"], "invalid label selector"))


def _daemon_set_spec(errors: Errors, spec: Obj) -> None:
    selector = spec.get("selector")
    label_selector(errors, selector, "spec.selector")
    found = spec["template"]["metadata"].get("labels", {})
    # No selector selects nothing; an empty one all.
    if selector is None or (is_usable(selector) and not selects(selector, found)):
        errors.append(invalid("spec.template.metadata.labels", found or None, NO_MATCH))
    if selector is not None and is_empty(selector):
        what = "empty selector is invalid for daemonset"
        errors.append(invalid("spec.selector", selector, what))
    template(errors, spec["template"], "spec.template")
    always_running(errors, spec["template"]["spec"], "DaemonSet")
    not_negative(errors, spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    _daemon_strategy(errors, spec["updateStrategy"], "spec.updateStrategy")
    not_negative(errors, spec.get("revisionHistoryLimit", 0), "spec.revisionHistoryLimit")


def _daemon_strategy(errors: Errors, strategy: Obj, path: str) -> None:
    if strategy["type"] == "RollingUpdate":
        rolling, at = strategy["rollingUpdate"], f"{path}.rollingUpdate"
        names = ("maxUnavailable", "maxSurge")
        for name in names:
            count_or_percent(errors, rolling[name], f"{at}.{name}")
        for name in names:
            at_most_all(errors, rolling[name], f"{at}.{name}")
        missing, surging = (amount(rolling[name]) != 0 for name in names)
        if missing and surging:
            what = "may not be set when maxUnavailable is non-zero"
            errors.append(invalid(f"{at}.maxSurge", rolling["maxSurge"], what))
        elif not missing and not surging:
            what = "cannot be 0 when maxSurge is 0"
            errors.append(required(f"{at}.maxUnavailable", what))
    elif strategy["type"] != "OnDelete":
        errors.append(not_supported(path, strategy, ("RollingUpdate", "OnDelete")))


def _stateful_policies(errors: Errors, spec: Obj) -> None:
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        what = "must be 'OrderedReady' or 'Parallel'"
        errors.append(invalid("spec.podManagementPolicy", policy, what))
    strategy, path = spec["updateStrategy"], "spec.updateStrategy"
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "OnDelete":
        if rolling is not None:
            what = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(invalid(f"{path}.rollingUpdate", rolling, what))
    elif strategy["type"] == "RollingUpdate":
        if rolling is not None:
            partition = rolling.get("partition", 0)
            not_negative(errors, partition, f"{path}.rollingUpdate.partition")
    else:
        errors.append(invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'"))
    retention = spec["persistentVolumeClaimRetentionPolicy"]
    for name in ("whenDeleted", "whenScaled"):
        if retention[name] not in ("Retain", "Delete"):
            at = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            errors.append(not_supported(at, retention[name], ("Retain", "Delete")))


def _stateful_counts(errors: Errors, spec: Obj) -> None:
    not_negative(errors, spec["replicas"], "spec.replicas")
    not_negative(errors, spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    not_negative(errors, spec.get("ordinals", {}).get("start", 0), "spec.ordinals.start")


def _stateful_template(errors: Errors, spec: Obj) -> None:
    value = spec["template"]
    if _selector(errors, spec, "statefulset"):
        _template_selected(errors, spec)
        metadata, path = value["metadata"], "spec.template"
        template(errors, _with_claims(spec), path)
        labels(errors, metadata.get("labels", {}), f"{path}.labels")
        annotations(errors, metadata.get("annotations", {}), f"{path}.annotations")
        pod_annotations(errors, metadata, value["spec"], f"{path}.annotations")
    else:
        errors.append(invalid("spec.selector", spec["selector"], ""))
    always_running(errors, value["spec"], "StatefulSet")


def _with_claims(spec: Obj) -> Obj:
    """The template with a volume for each claim template, and without names that each pod gets."""
    inner = {
        k: v for k, v in spec["template"]["spec"].items() if k not in ("hostname", "subdomain")
    }
    claims = spec.get("volumeClaimTemplates", ())
    if claims:
        names = {claim["metadata"].get("name", ""): None for claim in claims}
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        others = [volume for volume in inner.get("volumes", ()) if volume["name"] not in names]
        inner["volumes"] = [*made, *others]
    return {"metadata": spec["template"]["metadata"], "spec": inner}


def _revision(errors: Errors, obj: Obj) -> None:
    own_meta(errors, obj["metadata"], dns_subdomain)
    not_negative(errors, obj["revision"], "revision")
