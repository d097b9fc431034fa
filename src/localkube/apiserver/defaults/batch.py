"""Defaults of the batch group."""

from kubeclient.objects import Obj
from localkube.apiserver.defaults.pods import template_in_spec

_NO_LIMIT = 2**31 - 1


def job(value: Obj) -> None:
    spec: Obj = value["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        # The same labels, not their copy: those that the server gives the pods, the job gets, too.
        value["metadata"].setdefault("labels", labels)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    replaced = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced)
    spec.setdefault("manualSelector", False)
    _in_template(value)


def cron_job(value: Obj) -> None:
    spec: Obj = value["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    # Of the job's own fields nothing: the job gets its defaults when it is made.
    _in_template(spec["jobTemplate"])


def _in_template(value: Obj) -> None:
    template_in_spec(value)
    for rule in value["spec"].get("podFailurePolicy", {}).get("rules", ()):
        for pattern in rule.get("onPodConditions", ()):
            if not pattern["status"]:
                pattern["status"] = "True"
