"""The CronJob controller: creates a Job at every time that a schedule names."""

import datetime
from collections.abc import Sequence
from email.utils import format_datetime

from kubeclient.errors import AlreadyExists, KubeError, NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key, controller_uid
from kubeclient.objects import Obj
from kubeclient.resources import CRON_JOBS, JOBS
from kubeclient.times import duration
from localkube import cron
from localkube.controllers import cron_job_times as times
from localkube.controllers import ownership
from localkube.controllers.cron_job_times import Missed, NeverDue
from localkube.controllers.job_tracking import finished_condition
from localkube.controllers.pod_writes import namespace_is_going
from localkube.controllers.pods import controller_reference, is_terminating, stamp
from localkube.controllers.run import Context, Controller, Watch, controlled_by


async def reconcile(key: Key, context: Context) -> float | None:
    cron_job = context.of(CRON_JOBS).get(key[1], key[0])
    return None if cron_job is None else await _CronJob(cron_job, context).step()


CONTROLLER = Controller(
    "cronjob-controller",
    (Watch(CRON_JOBS), Watch(JOBS, controlled_by("CronJob"))),
    reconcile,
    add_indexes=lambda context: ownership.add_indexes(context.of(JOBS)),
)


class _CronJob:
    """One reconcile of one CronJob."""

    def __init__(self, cron_job: Obj, context: Context) -> None:
        self.cron_job = cron_job
        self.spec = cron_job["spec"]
        self.context = context
        self.now = context.now()
        status = cron_job.get("status", {})
        # Whoever may write the status may write any reference: without name and uid it means none.
        listed = status.get("active") or ()
        self.active: list[Obj] = [each for each in listed if each.get("uid") and each.get("name")]
        self.last_success: str | None = status.get("lastSuccessfulTime")
        self.last_time: str | None = status.get("lastScheduleTime")

    async def step(self) -> float | None:
        uid = self.cron_job["metadata"]["uid"]
        jobs = self.context.of(JOBS).by(ownership.BY_CONTROLLER, uid)
        for job in surplus(self.cron_job, jobs):
            await self._delete(job)
        try:
            await self._review(jobs)
            again_s = await self._start_if_due()
        except Exception:
            await self._write_status()
            raise
        # Not in a `finally`: a conflict of this write would take the place of a cancellation, and
        # the worker would go on.
        await self._write_status()
        return again_s

    def _say(self, kind: str, reason: str, text: str) -> None:
        self.context.events.event(self.cron_job, kind, reason, text)

    # -- existing Jobs -------------------------------------------------------------------------

    async def _review(self, jobs: list[Obj]) -> None:
        known = {job["metadata"]["uid"] for job in jobs}
        for job in jobs:
            self._review_one(job)
        for active in self.active:
            if active["uid"] not in known and await self._found(active) is None:
                self._say(NORMAL, "MissingJob", f"Active job went missing: {active['name']}")
                self._forget(active["uid"])

    def _review_one(self, job: Obj) -> None:
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        listed = any(active["uid"] == uid for active in self.active)
        how = ending(job)
        if not how:
            if not listed and not is_terminating(job):
                text = f"Saw a job that the controller did not create or forgot: {name}"
                self._say(WARNING, "UnexpectedJob", text)
            return
        if listed:
            self._forget(uid)
            text = f"Saw completed job: {name}, condition: {how}"
            self._say(NORMAL, "SawCompletedJob", text)
        completed = job["status"].get("completionTime")
        if how == "Complete" and completed:
            self.last_success = max(self.last_success or completed, completed)

    async def _found(self, active: Obj) -> Obj | None:
        """The Job that is meant. Asks the API server, because the mirror may be late. It is looked
        for in the CronJob's own namespace, whatever the reference says."""
        try:
            namespace = self.cron_job["metadata"]["namespace"]
            job = await self.context.kube.get(JOBS, active["name"], namespace)
        except NotFound:
            return None
        return job if job["metadata"]["uid"] == active["uid"] else None

    def _forget(self, uid: str) -> None:
        self.active = [active for active in self.active if active["uid"] != uid]

    async def _delete(self, job: Obj) -> None:
        metadata = job["metadata"]
        if is_terminating(job):
            return
        options = {"propagationPolicy": "Background", "preconditions": {"uid": metadata["uid"]}}
        try:
            await self.context.kube.delete(
                JOBS, metadata["name"], metadata["namespace"], options=options
            )
        except NotFound:
            pass
        except KubeError as error:
            self._say(WARNING, "FailedDelete", f"Deleted job: {error}")
            raise
        else:
            self._say(NORMAL, "SuccessfulDelete", f"Deleted job {metadata['name']}")
        self._forget(metadata["uid"])

    # -- the next Job --------------------------------------------------------------------------

    async def _start_if_due(self) -> float | None:
        if is_terminating(self.cron_job):
            return None
        zone = self._zone()
        if zone is None or self.spec.get("suspend"):
            return None
        text = self.spec["schedule"]
        try:
            schedule = cron.parse(text)
            found = times.due(self.cron_job, schedule, zone, self.now, True)
        except cron.CronError as error:
            self._say(WARNING, "UnparseableSchedule", f'unparseable schedule: "{text}" : {error}')
            return None
        except NeverDue as error:
            self._say(WARNING, "InvalidSchedule", f"invalid schedule: {text} : {error}")
            return None
        if found.latest is not None:
            if found.missed is Missed.MANY:
                why = (
                    "too many missed start times. Set or decrease "
                    ".spec.startingDeadlineSeconds or check clock skew"
                )
                self._say(WARNING, "TooManyMissedTimes", why)
            if self._may_start(found.latest):
                await self._start(found.latest, zone)
        known = {**self.cron_job, "status": {"lastScheduleTime": self.last_time}}
        return times.seconds_to_next(known, schedule, zone, self.now)

    def _zone(self) -> datetime.tzinfo | None:
        try:
            return times.zone_of(self.cron_job)
        except (ValueError, KeyError, OSError):
            name = self.spec["timeZone"]
            text = f'invalid timeZone: "{name}": unknown time zone {name}'
            self._say(WARNING, "UnknownTimeZone", text)
            return None

    def _may_start(self, time: datetime.datetime) -> bool:
        limit_s = self.spec.get("startingDeadlineSeconds")
        if limit_s is not None and time + duration(limit_s) < self.now:
            text = f"Missed scheduled time to start a job: {format_datetime(time)}"
            self._say(WARNING, "MissSchedule", text)
            return False
        name = job_name(self.cron_job, time)
        if any(active["name"] == name for active in self.active):
            return False  # the Job of this minute has been created already
        if self.spec.get("concurrencyPolicy") == "Forbid" and self.active:
            text = (
                "Not starting job because prior execution is running and concurrency policy is "
                "Forbid"
            )
            self._say(NORMAL, "JobAlreadyActive", text)
            return False
        return True

    async def _start(self, time: datetime.datetime, zone: datetime.tzinfo) -> None:
        if self.spec.get("concurrencyPolicy") == "Replace":
            for active in list(self.active):
                running = await self._found(active)
                if running is not None:
                    await self._delete(running)
                self._forget(active["uid"])
        job = new_job(self.cron_job, time, zone)
        metadata = job["metadata"]
        try:
            job = await self.context.kube.create(JOBS, job)
        except AlreadyExists:
            job = await self.context.kube.get(JOBS, metadata["name"], metadata["namespace"])
            if controller_uid(job) != self.cron_job["metadata"]["uid"]:
                return
        except KubeError as error:
            if not namespace_is_going(error):
                self._say(WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        else:
            self._say(NORMAL, "SuccessfulCreate", f"Created job {metadata['name']}")
        if not ending(job):
            self.active.append(reference(job))
        self.last_time = stamp(time)

    async def _write_status(self) -> None:
        found = {
            "active": self.active,
            "lastScheduleTime": self.last_time,
            "lastSuccessfulTime": self.last_success,
        }
        status = {name: value for name, value in found.items() if value}
        if status != (self.cron_job.get("status") or {}):
            changed = {**self.cron_job, "status": status}
            await self.context.kube.update_status(CRON_JOBS, changed)


_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def job_name(cron_job: Obj, time: datetime.datetime) -> str:
    """The name depends on the scheduled minute only, so that no Job is created twice."""
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
    """Complete or Failed; empty while the Job runs."""
    condition = finished_condition(job)
    return "" if condition is None else str(condition["type"])


def surplus(cron_job: Obj, jobs: Sequence[Obj]) -> list[Obj]:
    """The finished Jobs beyond the history limits, oldest first."""
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
