"""A Job's task and its runs: spec and pods as the Job's decisions see them. Pure."""

import datetime
from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.controllers import job_policies
from localkube.controllers.job_policies import Failure
from localkube.controllers.pods import (
    Rank,
    annotation,
    deletion_rank,
    is_ready,
    is_terminating,
    parse_time,
    standing_of,
)

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"  # annotation and label
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
CONTROLLER_NAME = "kubernetes.io/job-controller"
_LONG_AGO = datetime.datetime.fromtimestamp(0, datetime.UTC)


@dataclass(frozen=True, slots=True)
class Task:
    completions: int | None
    parallelism: int
    backoff_limit: int
    backoff_limit_per_index: int | None
    max_failed_indexes: int | None
    indexed: bool
    suspended: bool
    deadline_s: int | None
    only_replaces_failed: bool  # not pods that are still on their way out
    restarts_containers: bool
    success_policy: Obj | None
    deleted: bool


def task_of(job: Obj) -> Task:
    spec = job["spec"]
    return Task(
        completions=spec.get("completions"),
        parallelism=spec.get("parallelism", 1),
        backoff_limit=spec.get("backoffLimit", 6),
        backoff_limit_per_index=spec.get("backoffLimitPerIndex"),
        max_failed_indexes=spec.get("maxFailedIndexes"),
        indexed=spec.get("completionMode") == "Indexed",
        suspended=bool(spec.get("suspend")),
        deadline_s=spec.get("activeDeadlineSeconds"),
        only_replaces_failed=(
            spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec
        ),
        restarts_containers=spec["template"]["spec"].get("restartPolicy") == "OnFailure",
        success_policy=spec.get("successPolicy"),
        deleted=is_terminating(job),
    )


@dataclass(frozen=True, slots=True)
class Run:
    """A pod."""

    name: str
    uid: str
    phase: str
    rank: Rank  # who goes first when there are too many
    ready: bool = False
    terminating: bool = False
    tracked: bool = True  # carries our finalizer: it has not been counted for good
    index: int | None = None
    finished_at: datetime.datetime = _LONG_AGO
    restarts: int = 0
    failures: int = 0  # earlier ones of its index
    ignored_failures: int = 0
    failure: Failure = job_policies.COUNTED

    @property
    def active(self) -> bool:
        return self.phase not in ("Succeeded", "Failed") and not self.terminating

    @property
    def leaving(self) -> bool:
        return self.phase not in ("Succeeded", "Failed") and self.terminating

    def failed(self, task: Task) -> bool:
        """A deleted pod may never get to fail, so it counts as failed; unless only those are
        replaced that really have."""
        if self.phase == "Failed":
            return True
        return self.terminating and self.phase != "Succeeded" and not task.only_replaces_failed


def run_of(pod: Obj, job: Obj, now: datetime.datetime) -> Run:
    status, metadata = pod.get("status", {}), pod["metadata"]
    containers = [
        container
        for kind in ("containerStatuses", "initContainerStatuses")
        for container in status.get(kind) or ()
    ]
    return Run(
        name=metadata["name"],
        uid=metadata["uid"],
        phase=status.get("phase", "Pending"),
        rank=deletion_rank(standing_of(pod), 0, now.timestamp()),
        ready=is_ready(pod),
        terminating=is_terminating(pod),
        tracked=FINALIZER in (metadata.get("finalizers") or ()),
        index=index_of(pod),
        finished_at=finished_at(pod),
        restarts=sum(container.get("restartCount", 0) for container in containers),
        failures=_count(annotation(pod, FAILURES)),
        ignored_failures=_count(annotation(pod, IGNORED_FAILURES)),
        failure=job_policies.failure_of(pod, job["spec"].get("podFailurePolicy")),
    )


def index_of(pod: Obj) -> int | None:
    text = annotation(pod, INDEX)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _count(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 11 else 0
    return number if number < 2**31 else 0


def finished_at(pod: Obj) -> datetime.datetime:
    """When its last container ended; else when it ceased to be ready; else when its deletion was
    asked for; else when it was made."""
    metadata, status = pod["metadata"], pod.get("status", {})
    ends = [_end(container) for container in _lasting(pod)]
    if ends and all(ends):
        return parse_time(max(filter(None, ends)))
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "False":
            when = condition.get("lastTransitionTime")
            if when:
                return parse_time(when)
    if is_terminating(pod):
        grace = datetime.timedelta(seconds=metadata.get("deletionGracePeriodSeconds", 0))
        return parse_time(metadata["deletionTimestamp"]) - grace
    return parse_time(metadata.get("creationTimestamp"))


def _lasting(pod: Obj) -> list[Obj]:
    """Statuses of the containers that run to the end: not of those that only prepare."""
    status = pod.get("status", {})
    sidecars = {
        container["name"]
        for container in pod["spec"].get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    beside = [c for c in status.get("initContainerStatuses") or () if c["name"] in sidecars]
    return [*(status.get("containerStatuses") or ()), *beside]


def _end(container: Obj) -> str | None:
    ended = (container.get("state") or {}).get("terminated") or {}
    return ended.get("finishedAt")
