"""void_earlier_bindings: makes the API server refuse Bindings that an earlier leader has sent.

After an unclean failover the new leader updates every pending pod once. That changes the pod's
resourceVersion, and a Binding names the resourceVersion that it was decided for (`Kube.bind`). So
every Binding from before the update is refused with 409, however late it arrives, and without
comparing clocks of two machines. A Binding that arrives before the update succeeds, and the new
leader sees the pod bound when it reads all pods afterwards.

It is right only if it is complete before the first read of the new leader's own state. So it
retries until it succeeds; scheduling waits for it.
"""

import asyncio
import logging

from gpupool.contract.names import ANNOTATION_TERM
from gpupool.scheduler.kube_scheduler_config import MANAGED
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.lease import Term
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

# Scheduling waits until all pods are marked, so the writes run in parallel.
_AT_ONCE = 64
_PAUSE_S = 0.5


async def void_earlier_bindings(kube: Kube, term: Term) -> None:
    """Returns when no Binding from before this term can succeed, however long that takes."""
    if not term.inherits:
        return
    # Also the names of the last leader: its Bindings may be for pods with a name that nobody asks
    # for any more.
    names = term.serves | term.served_before
    while True:
        try:
            # A pod that is created after this list needs no mark: the old leader would have to read
            # it first, and would then find `may_act` false.
            waiting = (await kube.list(PODS, query={"fieldSelector": "spec.nodeName="})).items
            break
        except KubeError as error:
            log.warning("pending pods cannot be read", extra={"error": str(error)})
            await asyncio.sleep(_PAUSE_S)
    # One iterator for all workers, so that each pod is taken by exactly one of them.
    marked = iter([pod for pod in waiting if _may_be_bound_by_us(pod, names)])

    async def work() -> None:
        for pod in marked:
            await _mark(kube, pod, term.token)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


def _may_be_bound_by_us(pod: Obj, names: frozenset[str]) -> bool:
    """Whether a scheduler (by spec.schedulerName) or an extender (any GPU pod) may bind it."""
    return pod["spec"].get("schedulerName") in names or any(
        resource in ((container.get("resources") or {}).get("limits") or {})
        for part in ("containers", "initContainers")
        for container in pod["spec"].get(part) or ()
        for resource in MANAGED
    )


async def _mark(kube: Kube, pod: Obj, token: str) -> None:
    metadata = pod["metadata"]
    # Through the status subresource: the scheduler may patch pods/status, not pods.
    path = PODS.path(metadata["namespace"], metadata["name"], "status")
    mark = {"metadata": {"annotations": {ANNOTATION_TERM: token}}}
    while True:
        try:
            await kube.patch(path, mark)
        except NotFound:
            return
        except KubeError as error:
            log.warning("pod not marked", extra={"pod": metadata["name"], "error": str(error)})
            await asyncio.sleep(_PAUSE_S)
        else:
            return
