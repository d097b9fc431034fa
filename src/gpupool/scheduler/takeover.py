"""void_earlier_bindings: makes the API server refuse Bindings that an earlier leader has sent.

After an unclean failover the new leader updates every pending pod once. That changes the pod's
resourceVersion, and a Binding names the resourceVersion that it was decided for (`Kube.bind`). So
every Binding from before the update is refused with 409, however late it arrives, and without
comparing clocks of two machines. A Binding that arrives before the update succeeds, and the new
leader sees the pod bound when it reads all pods afterwards.

It is right only if it is complete before the first read of the new leader's own state. So it
retries, and scheduling waits for it.

A pod may be protected from it: a webhook refuses the write or hangs, or the stored pod is not valid
any more. Such a pod must not stop the others for ever. Its mark is given up after the time in which
a request that was sent can still arrive, so that nobody else gets the cards that an earlier Binding
gives it. It is then scheduled like the others: that Binding fails as soon as the pod has a node.
"""

import asyncio
import logging
from collections.abc import Callable

from gpupool.contract.names import ANNOTATION_TERM
from gpupool.scheduler.bind import LATEST_S
from gpupool.scheduler.kube_scheduler_config import is_managed
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound, TooMany, is_certain
from kubeclient.lease import Term, seconds_since_boot
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

# Scheduling waits until all pods are marked, so the writes run in parallel.
_AT_ONCE = 64
_PAUSE_S = 0.5


async def void_earlier_bindings(
    kube: Kube, term: Term, clock: Callable[[], float] = seconds_since_boot
) -> list[Obj]:
    """Returns when no Binding from before this term can succeed, however long that takes.

    Returns the pods for which that is not certain, because nobody can write to them.
    """
    if not term.inherits:
        return []
    # The last leader has sent nothing since this term began.
    arrived_s = clock() + LATEST_S
    # Also the names of the last leader: its Bindings may be for pods with a name that nobody asks
    # for any more.
    names = term.serves | term.served_before
    waiting = await _pending_pods(kube)
    # One iterator for all workers, so that each pod is taken by exactly one of them.
    marked = iter([pod for pod in waiting if _may_be_bound_by_us(pod, names)])
    unmarked: list[Obj] = []

    async def work() -> None:
        for pod in marked:
            if not await _mark(kube, pod, term.token, lambda: clock() > arrived_s):
                unmarked.append(pod)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return unmarked


async def _pending_pods(kube: Kube) -> list[Obj]:
    while True:
        try:
            # A pod that is created after this list needs no mark: the old leader would have to read
            # it first, and would then find `may_act` false.
            return (await kube.list(PODS, query={"fieldSelector": "spec.nodeName="})).items
        except KubeError as error:
            log.warning("pending pods cannot be read", extra={"error": str(error)})
            await asyncio.sleep(_PAUSE_S)


def _may_be_bound_by_us(pod: Obj, names: frozenset[str]) -> bool:
    """Whether a scheduler (by spec.schedulerName) or an extender (any GPU pod) may bind it."""
    try:
        return pod["spec"].get("schedulerName") in names or is_managed(pod)
    except Exception:  # nobody can have decided about a pod that cannot be read
        log.exception("object not understood", extra={"object": pod["metadata"]["name"]})
        return False


async def _mark(kube: Kube, pod: Obj, token: str, all_arrived: Callable[[], bool]) -> bool:
    """Whether no earlier Binding of this pod can succeed any more."""
    metadata = pod["metadata"]
    # Through the status subresource: the scheduler may patch pods/status, not pods.
    path = PODS.path(metadata["namespace"], metadata["name"], "status")
    mark = {"metadata": {"annotations": {ANNOTATION_TERM: token}}}
    while True:
        try:
            await kube.patch(path, mark)
        except NotFound:
            return True
        except KubeError as error:
            log.warning("pod not marked", extra={"pod": metadata["name"], "error": str(error)})
            refused = is_certain(error) and not isinstance(error, TooMany)
        else:
            return True
        try:
            if not _is_unchanged(
                pod, await kube.get(PODS, metadata["name"], metadata["namespace"])
            ):
                return True
            # The server answers, only this pod cannot be written to. A pod without cards waits for
            # nothing: the kubelet itself refuses what is too much for its node.
            if (refused and not is_managed(pod)) or all_arrived():
                return False
        except NotFound:
            return True
        except KubeError as error:
            log.warning("pod not read", extra={"pod": metadata["name"], "error": str(error)})
        await asyncio.sleep(_PAUSE_S)


def _is_unchanged(listed: Obj, found: Obj) -> bool:
    """Whether a Binding for the pod as it was before the list would still be accepted.

    Any write since the list does what the mark does, also our own whose answer was lost.
    """
    return bool(
        found["metadata"]["uid"] == listed["metadata"]["uid"]
        and found["metadata"]["resourceVersion"] == listed["metadata"]["resourceVersion"]
    )
