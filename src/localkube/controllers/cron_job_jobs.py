"""The Jobs of a CronJob: their names, and which of them are kept. Pure."""

import datetime
from collections.abc import Sequence

from kubeclient.objects import Obj
from kubeclient.resources import CRON_JOBS, JOBS
from localkube.controllers.pods import controller_reference

_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def job_name(cron_job: Obj, time: datetime.datetime) -> str:
    """The same time, the same name: so nothing is started twice."""
    return f"{cron_job['metadata']['name']}-{int(time.timestamp()) // 60}"


def new_job(cron_job: Obj, time: datetime.datetime, zone: datetime.tzinfo) -> Obj:
    template = cron_job["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    scheduled = time.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")
    metadata: Obj = {
        "name": job_name(cron_job, time),
        "namespace": cron_job["metadata"]["namespace"],
        "annotations": {**(given.get("annotations") or {}), _SCHEDULED: scheduled},
        "ownerReferences": [controller_reference(cron_job, CRON_JOBS)],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": metadata,
        "spec": template["spec"],
    }


def reference(job: Obj) -> Obj:
    metadata = job["metadata"]
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "resourceVersion": metadata["resourceVersion"],
        "uid": metadata["uid"],
    }


def ending(job: Obj) -> str:
    """Complete, Failed, or nothing yet."""
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["type"])
    return ""


def surplus(cron_job: Obj, jobs: Sequence[Obj]) -> list[Obj]:
    """Finished ones beyond what is to be kept, oldest first."""
    spec = cron_job["spec"]
    limits = {
        "Complete": spec.get("successfulJobsHistoryLimit"),
        "Failed": spec.get("failedJobsHistoryLimit"),
    }
    found: list[Obj] = []
    for kind, limit in limits.items():
        ended = sorted((job for job in jobs if ending(job) == kind), key=_age)
        if limit is not None:
            found += ended[: max(0, len(ended) - limit)]
    return found


def _age(job: Obj) -> tuple[bool, str, str]:
    started = job.get("status", {}).get("startTime", "")
    return not started, started, job["metadata"]["name"]
