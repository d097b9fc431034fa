"""A job's status: counters and conditions that may not contradict each other or go back.

A rule about a field counts only if the field (or one that the rule needs) changes: what is already
wrong does not block later updates.
"""

from kubeclient.objects import Obj
from localkube.apiserver.validation.errors import (
    IMMUTABLE,
    Errors,
    duplicate,
    invalid,
    invalid_unshown,
    not_negative,
    required,
)
from localkube.apiserver.validation.job_policies import index_count, index_interval
from localkube.apiserver.validation.metadata import own_meta_update

_TERMINAL = ("Failed", "Complete", "FailureTarget")


def status_update(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    own_meta_update(errors, new["metadata"], old["metadata"])
    status, before = new.get("status", {}), old.get("status", {})
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        not_negative(errors, status.get(name, 0), f"status.{name}")
    _uncounted(errors, status.get("uncountedTerminatedPods", {}))
    _conditions(errors, status, before)
    _finished(errors, new, status, before)
    _indexes(errors, new["spec"], status, before)
    _pods_left(errors, status, before)
    _success_criteria(errors, new["spec"], status)
    _no_way_back(errors, new["spec"], status, before)
    return errors


def _pods_left(errors: Errors, status: Obj, before: Obj) -> None:
    ended = _is_finished(status)
    news = _changed(status, before, "terminating") or ended != _is_finished(before)
    if news and ended and status.get("terminating", 0) > 0:
        what = "terminating>0 is invalid for finished job"
        errors.append(invalid("status.terminating", status["terminating"], what))
    ready = status.get("ready")  # absent: nobody has counted, and nothing can be too many
    more_ready = ready is not None and ready > status.get("active", 0)
    if more_ready and _changed(status, before, "ready", "active"):
        what = "cannot set more ready pods than active"
        errors.append(invalid("status.ready", ready, what))


def _holds(status: Obj, name: str, value: str = "True") -> bool:
    conditions = status.get("conditions", ())
    return any(one["type"] == name and one["status"] == value for one in conditions)


def _is_finished(status: Obj) -> bool:
    return _holds(status, "Complete") or _holds(status, "Failed")


def _changed(status: Obj, before: Obj, *names: str) -> bool:
    return any(status.get(name) != before.get(name) for name in names)


def _turned(status: Obj, before: Obj, *names: str) -> bool:
    return any(_holds(status, name) != _holds(before, name) for name in names)


def _contradiction(errors: Errors, what: str, path: str = "status.conditions") -> None:
    errors.append(invalid_unshown(path, what))


def _uncounted(errors: Errors, uncounted: Obj) -> None:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for place, uid in enumerate(uncounted.get(name, ())):
            path = f"status.uncountedTerminatedPods.{name}[{place}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)


def _conditions(errors: Errors, status: Obj, before: Obj) -> None:
    complete, failed = _holds(status, "Complete"), _holds(status, "Failed")
    if _turned(status, before, "Complete", "Failed") and complete and failed:
        _contradiction(errors, "cannot set Complete=True and Failed=true conditions")
    target = _holds(status, "FailureTarget")
    if _turned(status, before, "Complete", "FailureTarget") and complete and target:
        _contradiction(errors, "cannot set Complete=True and FailureTarget=true conditions")
    _completion_time(errors, status, before, complete=complete)
    news = _turned(status, before, "Failed") or _changed(status, before, "failedIndexes")
    if news and failed and not target:
        what = "cannot set Failed=True condition without the FailureTarget=true condition"
        _contradiction(errors, what)
    met = _holds(status, "SuccessCriteriaMet")
    if _turned(status, before, "Complete", "SuccessCriteriaMet") and complete and not met:
        what = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        _contradiction(errors, what)


def _completion_time(errors: Errors, status: Obj, before: Obj, *, complete: bool) -> None:
    path, time = "status.completionTime", status.get("completionTime")
    if _turned(status, before, "Complete") or _changed(status, before, "completionTime"):
        if time is not None and not complete:
            what = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid(path, time, what))
        if time is None and complete:
            errors.append(required(path, "completionTime is required for Complete jobs"))
    start = status.get("startTime")
    if _changed(status, before, "startTime", "completionTime") and start and time and time < start:
        errors.append(invalid(path, time, "must be equal to or after `startTime`"))


def _finished(errors: Errors, new: Obj, status: Obj, before: Obj) -> None:
    if not _is_finished(status):
        return
    turned = not _is_finished(before)
    if (turned or _changed(status, before, "active")) and status.get("active", 0) > 0:
        what = "active>0 is invalid for finished job"
        errors.append(invalid("status.active", status["active"], what))
    idle = new["spec"].get("suspend") and new["spec"].get("completions") == 0
    news = (turned or _changed(status, before, "startTime")) and not idle
    if news and "startTime" not in status:
        errors.append(required("status.startTime", "startTime is required for finished job"))
    pods = status.get("uncountedTerminatedPods", {})
    if (turned or _changed(status, before, "uncountedTerminatedPods")) and any(pods.values()):
        what = "must be empty for finished job"
        errors.append(invalid("status.uncountedTerminatedPods", pods, what))


def _indexes(errors: Errors, spec: Obj, status: Obj, before: Obj) -> None:
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    completions, per_index = spec.get("completions"), "backoffLimitPerIndex" in spec
    new_done, new_failed = (
        _changed(status, before, name) for name in ("completedIndexes", "failedIndexes")
    )
    if new_done and completions is not None:
        _parsed(errors, done, completions, "completedIndexes")
    if new_failed and completions is not None and per_index and failed is not None:
        _parsed(errors, failed, completions, "failedIndexes")
    if new_done and done and spec["completionMode"] != "Indexed":
        what = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", done, what))
    if new_failed and failed is not None and not per_index:
        what = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, what))
    if (new_done or new_failed) and completions is not None and failed is not None:
        overlap = _overlap(done, failed, completions)
        if overlap is not None:
            what = f"failedIndexes and completedIndexes overlap at index: {overlap}"
            errors.append(invalid("status.failedIndexes", failed, what))


def _parsed(errors: Errors, text: str, completions: int, name: str) -> None:
    _, why = index_count(text, completions)
    if why:
        errors.append(invalid(f"status.{name}", text, f"error parsing {name}: {why}"))


def _overlap(done: str, failed: str, completions: int) -> int | None:
    """The first index in both, of what can be read of them."""
    if not done or not failed:
        return None
    spans = []
    for text in (done, failed):
        read = (index_interval(part, completions) for part in text.split(","))
        spans.append(sorted(((low, high) for low, high, why in read if not why), reverse=True))
    while spans[0] and spans[1]:
        (low, high), (other, end) = spans[0][-1], spans[1][-1]
        if low <= end and other <= high:
            return max(low, other)
        spans[high > end].pop()
    return None


def _success_criteria(errors: Errors, spec: Obj, status: Obj) -> None:
    met = _holds(status, "SuccessCriteriaMet")
    if met and _holds(status, "Failed"):
        _contradiction(errors, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and _holds(status, "FailureTarget"):
        what = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
        _contradiction(errors, what)
    if "successPolicy" in spec and not met and _holds(status, "Complete"):
        what = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        _contradiction(errors, what)


def _no_way_back(errors: Errors, spec: Obj, status: Obj, before: Obj) -> None:
    for name in _TERMINAL:
        if _holds(before, name) and not _holds(status, name):
            _contradiction(errors, f"cannot disable the terminal {name}=True condition")
    scales = spec["completionMode"] == "Indexed" and spec.get("completions") == spec["parallelism"]
    for name in ("failed", *(() if scales else ("succeeded",))):
        if status.get(name, 0) < before.get(name, 0):
            what = f"cannot decrease the {name} counter"
            errors.append(invalid(f"status.{name}", status.get(name, 0), what))
    _same_times(errors, spec, status, before)
    met, was_met = (_holds(one, "SuccessCriteriaMet") for one in (status, before))
    if was_met and not met:
        _contradiction(errors, "cannot disable the SuccessCriteriaMet=True condition")
    if _holds(before, "Complete") and not was_met and met:
        what = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        _contradiction(errors, what)


def _same_times(errors: Errors, spec: Obj, status: Obj, before: Obj) -> None:
    then, now = before.get("completionTime"), status.get("completionTime")
    if then is not None and now is not None and then != now:
        errors.append(invalid("status.completionTime", now, IMMUTABLE))
    resuming = _holds(before, "Suspended") and _holds(status, "Suspended", "False")
    moved = "startTime" in before and _changed(status, before, "startTime")
    if moved and not resuming and not spec.get("suspend"):
        what = "startTime cannot be removed for unsuspended job"
        errors.append(required("status.startTime", what))
