"""Finished Jobs go after as many seconds as they say."""

from kubeclient.errors import Conflict, NotFound
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import JOBS
from localkube.controllers.pods import is_terminating, parse_time
from localkube.controllers.run import Context, Controller, Watch


def finished_at(job: Obj) -> str | None:
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["lastTransitionTime"])
    return None


async def reconcile(key: Key, context: Context) -> float | None:
    job = context.of(JOBS).get(key[1], key[0])
    if job is None or is_terminating(job):
        return None
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    finished = finished_at(job)
    if ttl_s is None or finished is None:
        return None
    left_s: float = ttl_s - (context.now() - parse_time(finished)).total_seconds()
    if left_s > 0:
        return left_s
    # The version too: whoever has just asked for more time is to get it.
    metadata = job["metadata"]
    preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    options = {"propagationPolicy": "Foreground", "preconditions": preconditions}
    try:
        await context.kube.delete(JOBS, key[1], key[0], options=options)
    except (NotFound, Conflict):
        return None
    return None


CONTROLLER = Controller("ttl-after-finished-controller", (Watch(JOBS),), reconcile)
