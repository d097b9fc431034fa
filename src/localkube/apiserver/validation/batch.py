"""Jobs and CronJobs."""

import re
import zoneinfo
from functools import cache

from kubeclient.objects import Obj
from localkube import cron
from localkube.apiserver.validation.domains import domain_prefixed_path
from localkube.apiserver.validation.errors import (
    Errors,
    invalid,
    not_negative,
    not_supported,
    required,
    too_long,
    unchanged,
)
from localkube.apiserver.validation.formats import dns_label, dns_subdomain, size
from localkube.apiserver.validation.job_policies import (
    failure_policy,
    replacement_policy,
    success_policy,
)
from localkube.apiserver.validation.metadata import own_meta, own_meta_update
from localkube.apiserver.validation.pods import template
from localkube.apiserver.validation.selectors import (
    is_usable,
    label_selector,
    selects,
)

_NUMBERS = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"),
    *("ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"),
)
_MOST_PARALLEL = 100_000
_MOST_FAILED_INDEXES = 100_000
_MANY_COMPLETIONS = 100_000
_MOST_PARALLEL_OF_MANY = 10_000
_MOST_FAILED_OF_MANY = 10_000
_MANAGER_MAX = 63
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch
_CRON_NAME_MAX = 52
_GENERATED = ("job-name", "controller-uid")
_TEMPLATE_CHANGES = ("nodeSelector", "tolerations", "schedulingGates")


def create_job(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, _own_metadata(obj), dns_subdomain)
    _generated_selector(errors, obj)
    _spec_with_selector(errors, obj["spec"], "spec")
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    if spec["completionMode"] == "Indexed" and spec.get("completions", 0) > 0:
        hostname = f"{name}-{spec['completions'] - 1}"
        if dns_label(hostname):
            what = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(invalid("metadata.name", name, what))
    return errors


def update_job(new: Obj, old: Obj) -> Errors:
    errors = create_job(new)
    own_meta_update(errors, new["metadata"], old["metadata"])
    spec, before = new["spec"], old["spec"]
    _spec_with_selector(errors, spec, "spec")
    _completions(errors, spec, before)
    if spec.get("selector") != before.get("selector"):
        errors.append(invalid("spec.selector", spec.get("selector"), "field is immutable"))
    _same_template(errors, new, old)
    unchanged(errors, spec["completionMode"], before["completionMode"], "spec.completionMode")
    _same(errors, spec, before, "podFailurePolicy")
    for name in ("backoffLimitPerIndex", "managedBy"):
        unchanged(errors, spec.get(name), before.get(name), f"spec.{name}")
    _same(errors, spec, before, "successPolicy")
    return errors


def create_cron_job(obj: Obj) -> Errors:
    errors: Errors = []
    own_meta(errors, obj["metadata"], dns_subdomain)
    _cron_spec(errors, obj["spec"], None)
    name = obj["metadata"].get("name", "")
    if size(name) > _CRON_NAME_MAX:
        what = f"must be no more than {_CRON_NAME_MAX} characters"
        errors.append(invalid("metadata.name", name, what))
    return errors


def update_cron_job(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    _cron_spec(errors, new["spec"], old["spec"])
    return errors


def cron_job_status(new: Obj, old: Obj) -> Errors:
    return []


def _own_metadata(obj: Obj) -> Obj:
    """Without labels that the server generated: those are reported with the template."""
    metadata: Obj = obj["metadata"]
    labels = metadata.get("labels", {})
    generated = all(key.removeprefix("batch.kubernetes.io/") in _GENERATED for key in labels)
    if not generated or labels != obj["spec"]["template"]["metadata"].get("labels"):
        return metadata
    return {key: value for key, value in metadata.items() if key != "labels"}


def _generated_selector(errors: Errors, obj: Obj) -> None:
    """Unless told otherwise, a job's pods carry its uid, and it selects them by it."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector") or "selector" not in spec:
        return
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    expected = {"controller-uid": uid, "job-name": name}
    expected |= {f"batch.kubernetes.io/{key}": value for key, value in expected.items()}
    found = spec["template"]["metadata"].get("labels", {})
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in found:
            errors.append(required(path, f"must be '{value}'"))
        elif found[key] != value:
            errors.append(invalid(path, found, f"must be '{value}'"))
    if is_usable(spec["selector"]) and not selects(spec["selector"], expected):
        errors.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))


def _spec_with_selector(errors: Errors, spec: Obj, path: str) -> None:
    _job_spec(errors, spec, path)
    selector = spec.get("selector")
    if selector is None:
        errors.append(required(f"{path}.selector"))
    label_selector(errors, selector, f"{path}.selector")
    found = spec["template"]["metadata"].get("labels", {})
    if selector is None or (is_usable(selector) and not selects(selector, found)):
        what = "`selector` does not match template `labels`"
        errors.append(invalid(f"{path}.template.metadata.labels", found or None, what))


def _job_spec(errors: Errors, spec: Obj, path: str) -> None:
    for name in _NUMBERS:
        if name in spec:
            not_negative(errors, spec[name], f"{path}.{name}")
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        what = "when maxFailedIndexes is specified"
        errors.append(required(f"{path}.backoffLimitPerIndex", what))
    if "managedBy" in spec:
        _managed_by(errors, spec["managedBy"], f"{path}.managedBy")
    _completion_mode(errors, spec, path)
    if "podFailurePolicy" in spec:
        failure_policy(errors, spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        success_policy(errors, spec, f"{path}.successPolicy")
    replacement_policy(errors, spec, f"{path}.podReplacementPolicy")
    template(errors, spec["template"], f"{path}.template")
    _restart_policy(errors, spec, f"{path}.template.spec.restartPolicy")


def _managed_by(errors: Errors, manager: str, path: str) -> None:
    domain_prefixed_path(errors, manager, path)
    if size(manager) > _MANAGER_MAX:
        errors.append(too_long(path, _MANAGER_MAX))


def _completion_mode(errors: Errors, spec: Obj, path: str) -> None:
    mode = spec.get("completionMode", "NonIndexed")
    if mode == "Indexed":
        _indexed(errors, spec, path)
    elif mode == "NonIndexed":
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                what = "requires indexed completion mode"
                errors.append(invalid(f"{path}.{name}", spec[name], what))
    else:
        at = f"{path}.completionMode"
        errors.append(not_supported(at, mode, ("NonIndexed", "Indexed")))


def _indexed(errors: Errors, spec: Obj, path: str) -> None:
    completions, parallel = spec.get("completions"), spec.get("parallelism", 0)
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallel > _MOST_PARALLEL:
        what = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallel, what))
    at = f"{path}.maxFailedIndexes"
    if completions is not None and failed is not None and failed > completions:
        errors.append(invalid(at, failed, "must be less than or equal to completions"))
    if failed is not None and failed > _MOST_FAILED_INDEXES:
        what = f"must be less than or equal to {_MOST_FAILED_INDEXES}"
        errors.append(invalid(at, failed, what))
    if (completions or 0) > _MANY_COMPLETIONS and "backoffLimitPerIndex" in spec:
        _many(errors, parallel, failed, path)


def _many(errors: Errors, parallel: int, failed: int | None, path: str) -> None:
    above = f"completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
    if failed is None:
        what = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        errors.append(required(f"{path}.maxFailedIndexes", what))
    if parallel > _MOST_PARALLEL_OF_MANY:
        what = f"must be less than or equal to {_MOST_PARALLEL_OF_MANY} when {above}"
        errors.append(invalid(f"{path}.parallelism", parallel, what))
    if failed is not None and failed > _MOST_FAILED_OF_MANY:
        what = f"must be less than or equal to {_MOST_FAILED_OF_MANY} when {above}"
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, what))


def _restart_policy(errors: Errors, spec: Obj, path: str) -> None:
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        errors.append(required(path, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(not_supported(path, policy, ("OnFailure", "Never")))
    elif "podFailurePolicy" in spec and policy != "Never":
        what = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid(path, policy, what))


def _completions(errors: Errors, spec: Obj, old: Obj) -> None:
    now, before = spec.get("completions"), old.get("completions")
    if spec["completionMode"] != "Indexed":
        unchanged(errors, now, before, "spec.completions")
    elif now is not None and now != before and now != spec.get("parallelism"):
        what = "can only be modified in tandem with spec.parallelism"
        errors.append(invalid("spec.completions", now, what))


def _same_template(errors: Errors, new: Obj, old: Obj) -> None:
    now, before = new["spec"]["template"], old["spec"]["template"]
    never_started = "startTime" not in old.get("status", {})
    if old["spec"].get("suspend") and never_started:
        before = _with_directions_of(before, now)
    if now != before:
        errors.append(invalid("spec.template", now, "field is immutable"))


def _with_directions_of(template: Obj, other: Obj) -> Obj:
    """With the scheduling directives of `other`, which may change until the job starts."""
    metadata = {k: v for k, v in template["metadata"].items() if k not in ("labels", "annotations")}
    for name in ("labels", "annotations"):
        if name in other["metadata"]:
            metadata[name] = other["metadata"][name]
    spec = {k: v for k, v in template["spec"].items() if k not in _TEMPLATE_CHANGES}
    spec |= {name: other["spec"][name] for name in _TEMPLATE_CHANGES if name in other["spec"]}
    mine, its = spec.pop("affinity", None), other["spec"].get("affinity")
    affinity = {k: v for k, v in (mine or {}).items() if k != "nodeAffinity"}
    if its is not None and "nodeAffinity" in its:
        affinity["nodeAffinity"] = its["nodeAffinity"]
    if affinity or its is not None:
        spec["affinity"] = affinity
    return {"metadata": metadata, "spec": spec}


def _same(errors: Errors, spec: Obj, old: Obj, name: str) -> None:
    if spec.get(name) != old.get(name):
        errors.append(invalid(f"spec.{name}", spec.get(name), "field is immutable"))


def _cron_spec(errors: Errors, spec: Obj, old: Obj | None) -> None:
    if not spec["schedule"]:
        errors.append(required("spec.schedule"))
    else:
        _schedule(errors, spec, zone_before=old is not None and "TZ" in old["schedule"])
    deadline = spec.get("startingDeadlineSeconds", 0)
    not_negative(errors, deadline, "spec.startingDeadlineSeconds")
    if "timeZone" in spec and (old is None or old.get("timeZone") != spec["timeZone"]):
        _time_zone(errors, spec["timeZone"], "spec.timeZone")
    policies = ("Allow", "Forbid", "Replace")
    if spec["concurrencyPolicy"] not in policies:
        at = "spec.concurrencyPolicy"
        errors.append(not_supported(at, spec["concurrencyPolicy"], policies))
    inner, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"
    _job_spec(errors, inner, path)
    if "selector" in inner:
        errors.append(
            invalid(f"{path}.selector", inner["selector"], "`selector` will be auto-generated")
        )
    if inner.get("manualSelector"):
        errors.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        not_negative(errors, spec[name], f"spec.{name}")


def _schedule(errors: Errors, spec: Obj, *, zone_before: bool) -> None:
    path, schedule = "spec.schedule", spec["schedule"]
    why = _schedule_problem(schedule)
    if why:
        errors.append(invalid(path, schedule, why))
    if "TZ" in schedule and not zone_before:
        what = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(path, schedule, what))
    elif "TZ" in schedule and "timeZone" in spec:
        what = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid(path, schedule, what))


def _schedule_problem(schedule: str) -> str:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, space, rest = schedule.partition("=")[2].partition(" ")
        if not space:
            return "invalid schedule format: runtime error: slice bounds out of range [:-1]"
        if not _is_zone(zone):
            return f"provided bad location {zone}: unknown time zone {zone}"
        schedule = rest.strip()
    try:
        cron.parse(schedule)
    except cron.CronError as error:
        return str(error)
    return ""


def _time_zone(errors: Errors, zone: str, path: str) -> None:
    if not zone:
        errors.append(invalid(path, zone, "timeZone must be nil or non-empty string"))
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            errors.append(invalid(path, zone, f"unknown time zone {zone}"))
            return
    if zone.lower() == "local":
        what = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        errors.append(invalid(path, zone, what))
    if not _is_zone(zone) and zone != "Local":
        errors.append(invalid(path, zone, f"unknown time zone {zone}"))


@cache
def _zones() -> frozenset[str]:
    """Empty on a machine without a time zone database: then none can be refused."""
    return frozenset(zoneinfo.available_timezones())


def _is_zone(zone: str) -> bool:
    return not _zones() or zone in _zones() or zone in ("", "UTC")
