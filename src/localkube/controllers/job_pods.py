"""What a Job reads out of its pods, and the pods that it makes. Pure.

The Job's decisions (job_plan.py, job_tracking.py) see a `Task` in place of the Job's spec and a
`JobPod` in place of a pod.
"""

import datetime
from dataclasses import dataclass

from kubeclient.objects import Obj
from kubeclient.resources import JOBS
from kubeclient.times import EPOCH, duration
from localkube.controllers.job_indexes import Indexes, parse_indexes
from localkube.controllers.pods import (
    Rank,
    annotation,
    deletion_rank,
    is_ready,
    is_terminating,
    parse_time,
    pod_from_template,
    standing_of,
    whole_number,
)

IGNORE, FAIL_JOB, FAIL_INDEX, COUNT = "Ignore", "FailJob", "FailIndex", "Count"


@dataclass(frozen=True, slots=True)
class Failure:
    """What the pod failure policy says about a failed pod."""

    action: str = COUNT
    message: str = ""  # why the whole Job fails

    @property
    def counts(self) -> bool:
        return self.action != IGNORE


COUNTED = Failure()


def failure_of(pod: Obj, policy: Obj | None) -> Failure:
    """The first rule that matches decides."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        why = _matches(pod, rule)
        if why:
            action = str(rule["action"])
            message = f"{why} matching {action} rule at index {number}"
            return Failure(action, message if action == FAIL_JOB else "")
    return COUNTED


def _matches(pod: Obj, rule: Obj) -> str:
    """How the message begins; empty if the rule does not match."""
    metadata, status = pod["metadata"], pod.get("status", {})
    where = f"{metadata['namespace']}/{metadata['name']}"
    if rule.get("onExitCodes"):
        asked = rule["onExitCodes"]
        for kind in ("containerStatuses", "initContainerStatuses"):
            for container in status.get(kind) or ():
                code = _exit_code(container)
                if code and _asks_for(asked, container["name"], code):
                    name = container["name"]
                    return f"Container {name} for pod {where} failed with exit code {code}"
        return ""
    patterns = {(p["type"], p.get("status", "True")) for p in rule.get("onPodConditions") or ()}
    for condition in status.get("conditions") or ():
        if (condition["type"], condition["status"]) in patterns:
            return f"Pod {where} has condition {condition['type']}"
    return ""


def _exit_code(container: Obj) -> int:
    ended = (container.get("state") or {}).get("terminated") or {}
    return int(ended.get("exitCode", 0))


def _asks_for(asked: Obj, name: str, code: int) -> bool:
    if asked.get("containerName") not in (None, name):
        return False
    listed = code in (asked.get("values") or ())
    return listed if asked["operator"] == "In" else not listed


def success_by(policy: Obj | None, succeeded: Indexes, completions: int) -> str | None:
    """The first rule of the success policy that is met, in Kubernetes' words."""
    if not succeeded:
        return None
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        wanted, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        chosen = succeeded
        if wanted is not None:
            asked = parse_indexes(wanted, completions)
            if not asked:
                continue
            chosen = succeeded & asked
            count = len(asked) if count is None else min(count, len(asked))
        if count is not None and len(chosen) >= count:
            return f"Matched rules at index {number}"
    return None


FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"  # annotation and label
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
CONTROLLER_NAME = "kubernetes.io/job-controller"


@dataclass(frozen=True, slots=True)
class Task:
    """What the decisions need of a Job's spec."""

    completions: int | None
    parallelism: int
    backoff_limit: int
    backoff_limit_per_index: int | None
    max_failed_indexes: int | None
    indexed: bool
    suspended: bool
    deadline_s: int | None
    only_replaces_failed: bool  # a terminating pod is replaced only after it has ended
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
class JobPod:
    """What the decisions need of a pod."""

    name: str
    uid: str
    phase: str
    rank: Rank  # the lowest is deleted first when there are too many pods
    ready: bool = False
    terminating: bool = False
    tracked: bool = True  # carries our finalizer: it is not counted yet
    index: int | None = None
    finished_at: datetime.datetime = EPOCH
    restarts: int = 0
    failures: int = 0  # of earlier pods of its index
    ignored_failures: int = 0
    failure: Failure = COUNTED

    @property
    def active(self) -> bool:
        return self.phase not in ("Succeeded", "Failed") and not self.terminating

    @property
    def leaving(self) -> bool:
        return self.phase not in ("Succeeded", "Failed") and self.terminating

    def failed(self, task: Task) -> bool:
        """Whether the pod counts as failed. A terminating pod may never reach the phase Failed, so
        it counts at once; unless the Job replaces only pods that have really failed."""
        if self.phase == "Failed":
            return True
        return self.terminating and self.phase != "Succeeded" and not task.only_replaces_failed


def job_pod_of(pod: Obj, job: Obj, now: datetime.datetime) -> JobPod:
    status, metadata = pod.get("status", {}), pod["metadata"]
    containers = [
        container
        for kind in ("containerStatuses", "initContainerStatuses")
        for container in status.get(kind) or ()
    ]
    return JobPod(
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
        failures=whole_number(annotation(pod, FAILURES)) or 0,
        ignored_failures=whole_number(annotation(pod, IGNORED_FAILURES)) or 0,
        failure=failure_of(pod, job["spec"].get("podFailurePolicy")),
    )


def index_of(pod: Obj) -> int | None:
    return whole_number(annotation(pod, INDEX))


def finished_at(pod: Obj) -> datetime.datetime:
    """When the last container ended; else when the pod stopped being ready; else when its deletion
    was requested; else when it was created."""
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
        grace = duration(metadata.get("deletionGracePeriodSeconds", 0))
        return parse_time(metadata["deletionTimestamp"]) - grace
    return parse_time(metadata.get("creationTimestamp"))


def _lasting(pod: Obj) -> list[Obj]:
    """The statuses of main containers and sidecars, not of ordinary init containers."""
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


_INDEX_ENV = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58


def new_pod(job: Obj) -> Obj:
    pod = pod_from_template(job, JOBS, job["spec"]["template"])
    finalizers = pod["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        pod["metadata"]["finalizers"] = [*finalizers, FINALIZER]
    return pod


def new_indexed_pod(job: Obj, index: int, replaced: JobPod | None) -> Obj:
    """`replaced`: the failed pod of the same index, whose number of failures is carried on."""
    pod, name = new_pod(job), job["metadata"]["name"]
    tail = f"-{index}-"
    metadata = pod["metadata"]
    metadata["generateName"] = f"{name[: _LONGEST_PREFIX - len(tail)]}{tail}"
    metadata["labels"] = {**(metadata.get("labels") or {}), INDEX: str(index)}
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        INDEX: str(index),
        **_failure_counts(job, replaced),
    }
    spec = {**pod["spec"], "hostname": f"{name}-{index}"}
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_with_index(container) for container in spec[kind]]
    pod["spec"] = spec
    return pod


def _failure_counts(job: Obj, replaced: JobPod | None) -> dict[str, str]:
    if "backoffLimitPerIndex" not in job["spec"]:
        return {}
    if replaced is None:
        return {FAILURES: "0"}
    counts = replaced.failure.counts
    ignored = replaced.ignored_failures + (not counts)
    found = {FAILURES: str(replaced.failures + counts)}
    return found | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


def _with_index(container: Obj) -> Obj:
    known = container.get("env") or []
    if any(variable["name"] == _INDEX_ENV for variable in known):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*known, {"name": _INDEX_ENV, "valueFrom": source}]}
