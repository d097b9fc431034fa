"""The pods of a Job. Pure."""

from kubeclient.objects import Obj
from kubeclient.resources import JOBS
from localkube.controllers.job_runs import (
    FAILURES,
    FINALIZER,
    IGNORED_FAILURES,
    INDEX,
    Run,
)
from localkube.controllers.pods import pod_from_template

_INDEX_ENV = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58


def new_pod(job: Obj) -> Obj:
    pod = pod_from_template(job, JOBS, job["spec"]["template"])
    finalizers = pod["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        pod["metadata"]["finalizers"] = [*finalizers, FINALIZER]
    return pod


def new_indexed_pod(job: Obj, index: int, replaced: Run | None) -> Obj:
    """`replaced`: the failed run of the same index whose count goes on."""
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


def _failure_counts(job: Obj, replaced: Run | None) -> dict[str, str]:
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
