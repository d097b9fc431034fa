"""Which containers hold which devices, and which cards they use.

The kubelet knows the devices of a container, the pod's allocation knows its cards. Both are asked
only while a card is not healthy, to mark the right devices as unhealthy. If the kubelet does not
answer, that is no error: see `devices.unhealthy_ids`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from gpupool.agent.devices import Holding
from gpupool.contract.allocation import BadAllocation, allocation_of
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.core.gpu import CardShare, ContainerGpus
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.kubeletapi.calling import channel_to
from kubeclient.kubeletapi.errors import RpcFailed
from kubeclient.kubeletapi.messages import ListPodResourcesResponse
from kubeclient.objects import Obj
from kubeclient.resources import PODS

Holdings = dict[str, list[Holding]]  # by resource

# How many devices of a resource a share of a card makes.
# This must agree with `devices.device_count`: there a card is counted in devices, here a share.
_WORTH: dict[str, Callable[[CardShare], int]] = {
    RESOURCE_GPU: lambda share: 1,
    RESOURCE_GPU_MEM: lambda share: share.units,
    RESOURCE_GPU_PERCENT: lambda share: share.percent,
}


async def current_holdings(kube: Kube, node: str, socket: Path) -> Holdings:
    """Empty if the kubelet or the API server does not answer."""
    try:
        async with channel_to(socket) as kubelet:
            # The kubelet is asked first: a pod that has devices is bound, so the list that is read
            # after it has the pod's allocation.
            given = await kubelet.pod_resources()
        query = {"fieldSelector": f"spec.nodeName={node}"}
        pods = (await kube.list(PODS, query=query)).items
    except (RpcFailed, KubeError):
        return {}
    return joined(given, pods)


def joined(given: ListPodResourcesResponse, pods: Iterable[Obj]) -> Holdings:
    used = {
        (pod["metadata"]["namespace"], pod["metadata"]["name"], gpus.container): gpus.shares
        for pod in pods
        for gpus in _containers(pod)
    }
    found: Holdings = {resource: [] for resource in _WORTH}
    for pod in given.pods:
        for container in pod.containers:
            # A container without an allocation (it missed admission) still holds its devices: they
            # are not free.
            shares = used.get((pod.namespace, pod.name, container.name), ())
            for devices in container.devices:
                if devices.resource_name in found:
                    worth = _worth(devices.resource_name, shares)
                    found[devices.resource_name].append(Holding(devices.device_ids, worth))
    return found


def _worth(resource: str, shares: Iterable[CardShare]) -> dict[str, int]:
    return {share.uuid: _WORTH[resource](share) for share in shares}


def _containers(pod: Obj) -> tuple[ContainerGpus, ...]:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATION, "")
    try:
        return allocation_of(text).containers if text else ()
    except BadAllocation:
        return ()
