"""Pods for a scheduler that does not look at them.

Every scheduler says in the condition PodScheduled why a pod waits. So whoever has looked at a pod
for a while has bound it, or has said something.
"""

import datetime

from gpupool.contract.names import EXTENDER_PROFILE, SCHEDULER_NAME
from kubeclient.objects import Obj
from kubeclient.times import moment_of

PATIENCE_S = 60.0
# By spec.schedulerName: what to do if nobody looks at its pods.
MENDS = {
    SCHEDULER_NAME: f"See that the pods of {SCHEDULER_NAME} run.",
    EXTENDER_PROFILE: f"See that kube-scheduler runs, and has the profile {EXTENDER_PROFILE}: "
    "`gpupool scheduler config` prints a configuration with it.",
}
_ENDED = ("Succeeded", "Failed")
_BY_THE_API_SERVER = "SchedulingGated"  # this reason stays when the last gate is gone


def is_overlooked(pod: Obj, now: datetime.datetime) -> bool:
    """Whether it is for one of our schedulers, and none has looked at it for a while."""
    if pod["spec"].get("schedulerName") not in MENDS or not is_unseen(pod):
        return False
    age_s = (now - moment_of(pod["metadata"]["creationTimestamp"])).total_seconds()
    return age_s > PATIENCE_S


def is_unseen(pod: Obj) -> bool:
    """Whether the pod wants a node, and no scheduler has said a word about it."""
    spec, status = pod["spec"], pod.get("status") or {}
    return not (
        spec.get("nodeName")
        # It has a node in mind, and waits for a volume there, say, which may take minutes.
        or status.get("nominatedNodeName")
        or spec.get("schedulingGates")
        or "deletionTimestamp" in pod["metadata"]
        or status.get("phase") in _ENDED
        or any(
            each.get("type") == "PodScheduled" and each.get("reason") != _BY_THE_API_SERVER
            for each in status.get("conditions") or ()
        )
    )
