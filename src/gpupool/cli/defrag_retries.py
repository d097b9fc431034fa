"""How many pods of a Job `gpupool defrag` may evict: to a Job, each of them is one that failed.

One that has no retries left makes no pod instead: it fails, and ends its other pods.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from gpupool.core.pods import DisruptionBudget
from kubeclient.bounded_numbers import bounded_number
from kubeclient.mirror import controller_uid
from kubeclient.objects import Obj
from kubeclient.selectors import NOTHING, LabelSelector, SelectorError, from_object

_USUAL = 6  # spec.backoffLimit
_EVICTED = "DisruptionTarget"  # the condition of a pod that was evicted
_ENDED = (137, 143)  # exit codes of programs that are killed, and that are told to end
_FAILURES = "batch.kubernetes.io/job-index-failure-count"


def budgets_of(jobs: Sequence[Obj], pods: Sequence[Obj]) -> dict[tuple[str, str], DisruptionBudget]:
    """By namespace and name. Only of Jobs that have more pods than retries: each set of pods that
    is tried is compared with all of these, and a cluster may have thousands of other Jobs. Where
    no retries are left, the pods stay anyway (`has_retries`).
    """
    if not jobs:  # then they were not read, or there are none
        return {}
    running = Counter(controller_uid(pod) for pod in pods if pod["spec"].get("nodeName"))
    found = {}
    for job in jobs:
        left = _left(job)
        if left is not None and 0 < left < running[job["metadata"]["uid"]]:
            metadata = job["metadata"]
            space = metadata["namespace"]
            found[space, metadata["name"]] = DisruptionBudget(space, _selector(job), left)
    return found


def has_retries(job: Obj, pod: Obj) -> bool:
    """Whether the Job makes another pod if this one is evicted now."""
    left = _left(job)
    if left is None:
        return True
    each = job["spec"].get("backoffLimitPerIndex")
    if each is None:
        return left > 0
    failed = bounded_number((pod["metadata"].get("annotations") or {}).get(_FAILURES) or "0")
    return left > 0 and failed is not None and failed < each


def _left(job: Obj) -> int | None:
    """None: it does not count evictions."""
    spec, status = job["spec"], job.get("status") or {}
    action = next(_actions(spec), "Count")
    if action != "Count":
        return None if action == "Ignore" else 0
    uncounted = (status.get("uncountedTerminatedPods") or {}).get("failed") or ()
    failed = (status.get("failed") or 0) + len(uncounted)
    limit = spec.get("backoffLimit")
    return max(0, (_USUAL if limit is None else limit) - failed)


def _actions(spec: Obj) -> Iterator[str]:
    """Of the rules that an evicted pod may meet; the first one counts."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        codes = rule.get("onExitCodes")
        if codes and rule["action"] != "Ignore" and any(_meets(code, codes) for code in _ENDED):
            yield rule["action"]
        for condition in rule.get("onPodConditions") or ():
            if condition["type"] == _EVICTED and condition.get("status", "True") == "True":
                yield rule["action"]


def _meets(code: int, codes: Obj) -> bool:
    is_in: bool = codes["operator"] == "In"
    return (code in codes["values"]) == is_in


def _selector(job: Obj) -> LabelSelector:
    try:
        return from_object(job["spec"].get("selector"))
    except SelectorError:  # the API server refuses such Jobs
        return NOTHING
