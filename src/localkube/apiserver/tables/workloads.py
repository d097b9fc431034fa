"""Rows of workload controllers and what they leave behind."""

from collections.abc import Sequence
from typing import Any

from kubeclient.objects import Obj
from kubeclient.selectors import SelectorError, from_object
from kubeclient.times import seconds_of
from localkube.apiserver.tables.durations import human_duration, since
from localkube.apiserver.tables.texts import (
    NONE,
    UNSET,
    age,
    condition_status,
    containers_of,
    deleting,
    label_text,
    name,
    selector_text,
    spec_of,
    status_of,
)

_JOB_STATES = ("Complete", "Failed")
_JOB_LATER_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def deployment(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    try:
        selector = from_object(spec.get("selector")).text
    except SelectorError:
        selector = "<invalid>"
    return [
        name(thing),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(thing, now_s),
        *containers_of(spec.get("template")),
        selector,
    ]


def replica_set(thing: Obj, now_s: float) -> list[Any]:
    return [*_replicas(thing, now_s), selector_text(spec_of(thing).get("selector"))]


def replication_controller(thing: Obj, now_s: float) -> list[Any]:
    return [*_replicas(thing, now_s), label_text(spec_of(thing).get("selector"))]


def _replicas(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    return [
        name(thing),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(thing, now_s),
        *containers_of(spec.get("template")),
    ]


def stateful_set(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    return [
        name(thing),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        age(thing, now_s),
        *containers_of(spec.get("template")),
    ]


def daemon_set(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    template = spec.get("template") or {}
    return [
        name(thing),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        label_text((template.get("spec") or {}).get("nodeSelector")),
        age(thing, now_s),
        *containers_of(template),
        selector_text(spec.get("selector")),
    ]


def job(thing: Obj, now_s: float) -> list[Any]:
    spec = spec_of(thing)
    return [
        name(thing),
        _job_state(thing),
        _completions(spec, status_of(thing)),
        _job_duration(status_of(thing), now_s),
        age(thing, now_s),
        *containers_of(spec.get("template")),
        selector_text(spec.get("selector")),
    ]


def _job_state(thing: Obj) -> str:
    for kind in _JOB_STATES:
        if condition_status(thing, kind) == "True":
            return kind
    if deleting(thing):
        return "Terminating"
    for kind in _JOB_LATER_STATES:
        if condition_status(thing, kind) == "True":
            return kind
    return "Running"


def _completions(spec: Obj, status: Obj) -> str:
    succeeded = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Obj, now_s: float) -> str:
    start_s = seconds_of(status.get("startTime") or "")
    if start_s is None:
        return ""
    end_s = seconds_of(status.get("completionTime") or "")
    return human_duration((now_s if end_s is None else end_s) - start_s)


def cron_job(thing: Obj, now_s: float) -> list[Any]:
    spec, status = spec_of(thing), status_of(thing)
    last = status.get("lastScheduleTime")
    inner = (spec.get("jobTemplate") or {}).get("spec") or {}
    suspend = spec.get("suspend")
    return [
        name(thing),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        UNSET if suspend is None else str(bool(suspend)),
        len(status.get("active") or ()),
        since(last, now_s) if last else NONE,
        age(thing, now_s),
        *containers_of(inner.get("template")),
        selector_text(inner.get("selector")),
    ]


def pod_template(thing: Obj, now_s: float) -> list[Any]:
    template = thing.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    return [name(thing), *containers_of(template), label_text(labels)]


def controller_revision(thing: Obj, now_s: float) -> list[Any]:
    owners: Sequence[Obj] = thing["metadata"].get("ownerReferences") or ()
    owner = next((o for o in owners if o.get("controller")), None)
    return [name(thing), _owner_text(owner), thing.get("revision", 0), age(thing, now_s)]


def _owner_text(owner: Obj | None) -> str:
    if owner is None:
        return NONE
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
    return f"{kind.lower()}/{owner.get('name', '')}"
