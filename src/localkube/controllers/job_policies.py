"""What a Job makes of a pod's failure, and when some successes are enough. Pure."""

from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.controllers import job_indexes
from localkube.controllers.job_indexes import Indexes

IGNORE, FAIL_JOB, FAIL_INDEX, COUNT = "Ignore", "FailJob", "FailIndex", "Count"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a failed pod is to be taken."""

    action: str = COUNT
    message: str = ""  # why the whole Job fails

    @property
    def counts(self) -> bool:
        return self.action != IGNORE


COUNTED = Failure()


def failure_of(pod: Obj, policy: Obj | None) -> Failure:
    """By the first rule that matches."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        why = _matches(pod, rule)
        if why:
            action = str(rule["action"])
            message = f"{why} matching {action} rule at index {number}"
            return Failure(action, message if action == FAIL_JOB else "")
    return COUNTED


def _matches(pod: Obj, rule: Obj) -> str:
    """The beginning of the message; empty: it does not match."""
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
    """Which rule is fulfilled, in Kubernetes' words."""
    if not succeeded:
        return None
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        wanted, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        chosen = succeeded
        if wanted is not None:
            asked = job_indexes.parse(wanted, completions)
            if not asked:
                continue
            chosen = succeeded & asked
            count = len(asked) if count is None else min(count, len(asked))
        if count is not None and len(chosen) >= count:
            return f"Matched rules at index {number}"
    return None
