"""Takeover: what was sent before our term, and may still be on its way, is made void.

A Binding names the version of the pod that it was decided for (`Kube.bind`). So a pod that waits
is written to once, and every Binding from before that is refused by the API server: however late it
comes, whoever held it up, and without comparing clocks. Nothing is decided until that is done.
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

_AT_ONCE = 64
_PAUSE_S = 0.5


async def void_earlier_bindings(kube: Kube, term: Term) -> None:
    """Returns when there can be none, however long that takes."""
    if not term.inherits:
        return
    names = term.serves | term.served_before
    while True:
        try:
            waiting = (await kube.list(PODS, query={"fieldSelector": "spec.nodeName="})).items
            break
        except KubeError as error:
            log.warning("pods that wait cannot be read", extra={"error": str(error)})
            await asyncio.sleep(_PAUSE_S)
    marked = iter([pod for pod in waiting if _may_be_bound_by_us(pod, names)])

    async def work() -> None:
        for pod in marked:
            await _mark(kube, pod, term.token)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


def _may_be_bound_by_us(pod: Obj, names: frozenset[str]) -> bool:
    """By its name, or as an extender: those bind pods that ask for GPUs, whoever asks them."""
    return pod["spec"].get("schedulerName") in names or any(
        resource in ((container.get("resources") or {}).get("limits") or {})
        for part in ("containers", "initContainers")
        for container in pod["spec"].get(part) or ()
        for resource in MANAGED
    )


async def _mark(kube: Kube, pod: Obj, token: str) -> None:
    metadata = pod["metadata"]
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
