"""A workload (Deployment, StatefulSet, DaemonSet, Job, CronJob) as lists show it."""

from dataclasses import dataclass, replace

from kubeclient.objects import Obj


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    namespace: str
    name: str
    uid: str
    wanted: int  # pods; of a Job: that have to succeed
    ready: int
    images: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    created: str
    is_ending: bool
    is_suspended: bool = False
    outcome: str = ""  # of a Job: Complete or Failed, once it is over
    why: str = ""  # it failed; of a Deployment: its pods cannot be made
    active: int = 0  # of a Job: pods that run; of a CronJob: Jobs that run
    schedule: str = ""
    last: str = ""  # of a CronJob: when it last ran


def workload_row(workload: Obj) -> WorkloadRow:
    """Of a Deployment or StatefulSet."""
    spec, status = _map(workload, "spec"), _map(workload, "status")
    wanted = spec.get("replicas")
    ready = int(status.get("readyReplicas") or 0)
    row = _row(workload, spec, 1 if wanted is None else int(wanted), ready)
    return replace(row, why=_refusal(status))


def daemon_set_row(workload: Obj) -> WorkloadRow:
    status = _map(workload, "status")
    wanted, ready = (status.get(key) for key in ("desiredNumberScheduled", "numberReady"))
    return _row(workload, _map(workload, "spec"), int(wanted or 0), int(ready or 0))


def job_row(job: Obj) -> WorkloadRow:
    spec, status = _map(job, "spec"), _map(job, "status")
    wanted = spec.get("completions")
    if wanted is None:  # then one success is enough, whatever its parallelism
        wanted = 1
    over: Obj = next((each for each in status.get("conditions") or () if _is_outcome(each)), {})
    return replace(
        _row(job, spec, int(wanted), int(status.get("succeeded") or 0)),
        is_suspended=bool(spec.get("suspend")),
        outcome=str(over.get("type") or ""),
        why=str(over.get("message") or ""),
        active=int(status.get("active") or 0),
    )


def cron_job_row(cron_job: Obj) -> WorkloadRow:
    spec, status = _map(cron_job, "spec"), _map(cron_job, "status")
    zone = f" {spec['timeZone']}" if spec.get("timeZone") else ""
    return replace(
        _row(cron_job, _map(_map(spec, "jobTemplate"), "spec"), 0, 0),
        is_suspended=bool(spec.get("suspend")),
        active=len(status.get("active") or ()),
        schedule=f"{spec.get('schedule') or ''}{zone}",
        last=str(status.get("lastScheduleTime") or ""),
    )


def images_of(template: Obj) -> tuple[str, ...]:
    """Of a template of pods."""
    containers = _map(template, "spec").get("containers") or ()
    return tuple(str(each.get("image") or "") for each in containers)


def owner_of(obj: Obj) -> str:
    """The uid of the object that controls it; empty: nobody."""
    for each in obj["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return str(each.get("uid") or "")
    return ""


def _row(workload: Obj, spec: Obj, wanted: int, ready: int) -> WorkloadRow:
    metadata = workload["metadata"]
    return WorkloadRow(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        wanted=wanted,
        ready=ready,
        images=images_of(_map(spec, "template")),
        labels=tuple(sorted((metadata.get("labels") or {}).items())),
        created=metadata.get("creationTimestamp") or "",
        is_ending="deletionTimestamp" in metadata,
    )


def _refusal(status: Obj) -> str:
    """Why pods of a Deployment cannot be made: it is said of the ReplicaSet, on whose events nobody
    looks, and here."""
    for each in status.get("conditions") or ():
        if each.get("type") == "ReplicaFailure" and each.get("status") == "True":
            return str(each.get("message") or "")
    return ""


def _is_outcome(condition: Obj) -> bool:
    return condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed")


def _map(obj: Obj, key: str) -> Obj:
    return obj.get(key) or {}
