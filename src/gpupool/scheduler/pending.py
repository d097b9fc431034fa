"""Pending: a pod without a node, with the few fields that scheduling needs."""

from collections.abc import Container, Hashable
from dataclasses import dataclass, replace

from gpupool.contract.names import LABEL_KEEP_ROOM
from gpupool.contract.pods import pod_request
from gpupool.contract.volumes import Storage, claim_uses, with_volumes
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.likeness import likeness
from gpupool.scheduler.groups import Group, group_of
from kubeclient.mirror import controller_uid
from kubeclient.objects import Obj

_DONE = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class VolumeInputs:
    """What the request of a pod with volume claims is made from again when a claim changes."""

    pod: Obj  # its name and volumes
    request: PodRequest  # without the volumes


@dataclass(frozen=True, slots=True)
class Pending:
    request: PodRequest
    created: str
    version: str
    generation: int  # of the pod's spec; 0: the API server does not set it
    scheduler: str  # the pod's spec.schedulerName
    seen_s: float  # when it was first seen pending, by our clock
    group: Group | None = None
    volume_inputs: VolumeInputs | None = None
    nominated: str = ""  # status.nominatedNodeName: the node that is cleared for it
    why: str = ""  # the message of its condition PodScheduled
    why_since: str = ""
    controller: str = ""  # uid of what has made it

    @property
    def uid(self) -> str:
        return self.request.uid

    @property
    def depends_on_pods(self) -> bool:
        """Whether it has constraints on other pods: affinity, spread, same card."""
        pod = self.request
        return bool(pod.affinity or pod.anti_affinity or pod.spreads or pod.same_card)

    def shape(self, cluster: ClusterModel) -> Hashable:
        """Equal for pods that are alike now: if one fits nowhere, none of them does."""
        # A node is being cleared for this pod alone, or room is kept for it: no other is like it.
        is_alone = self.nominated or self.uid in cluster.reserved
        alike = self.uid if is_alone else likeness(cluster, self.request)
        # Pods without it do not leave room to others that is free for them.
        alike = (alike, self.request.labels.get(LABEL_KEEP_ROOM))
        # Members of a group are tried together, unless the group is complete: then like other pods.
        return (self.group.key, alike) if self.group is not None else alike

    @property
    def shown(self) -> str:
        return f"{self.request.namespace}/{self.request.name}"

    @property
    def as_object(self) -> Obj:
        """The fields of the pod that events and Bindings need."""
        metadata = {
            "name": self.request.name,
            "namespace": self.request.namespace,
            "uid": self.request.uid,
            "resourceVersion": self.version,
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def is_done(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in _DONE


def is_never_bound(pod: Obj) -> bool:
    """Terminating without a node. The API server refuses every Binding of such a pod.

    So a Binding without an answer did not happen, and holds nothing any more: finalizers may keep
    the pod for days.
    """
    return "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName")


def wants_node(pod: Obj, schedulers: Container[str]) -> bool:
    """Whether the pod is pending and one of these schedulers is to place it."""
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and spec.get("schedulerName") in schedulers
        and not spec.get("schedulingGates")
        and "deletionTimestamp" not in pod["metadata"]
        and not is_done(pod)
    )


def _volume_inputs(pod: Obj, request: PodRequest) -> VolumeInputs | None:
    if not any(True for _ in claim_uses(pod)):
        return None
    # Not the whole pod: thousands of pending pods stay in memory.
    metadata = {"name": pod["metadata"]["name"]}
    volumes = {"metadata": metadata, "spec": {"volumes": pod["spec"]["volumes"]}}
    return VolumeInputs(volumes, request)


def request_with_volumes(pod: Obj, storage: Storage) -> PodRequest:
    """The request of a pod with its volumes."""
    return with_volumes(pod_request(pod), pod, storage)


def with_storage(pod: Pending, storage: Storage) -> Pending:
    """The pod with constraints from the current state of its volumes."""
    if pod.volume_inputs is None:
        return pod
    request = with_volumes(pod.volume_inputs.request, pod.volume_inputs.pod, storage)
    return replace(pod, request=request)


def pending_of(pod: Obj, seen_s: float) -> Pending:
    metadata, status = pod["metadata"], pod.get("status") or {}
    request, group = pod_request(pod), group_of(metadata)
    if isinstance(group, str):
        request, group = replace(request, unsupported=(*request.unsupported, group)), None
    said: Obj = {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            said = condition
    return Pending(
        request=request,
        created=metadata.get("creationTimestamp") or "",
        version=metadata.get("resourceVersion") or "",
        generation=metadata.get("generation") or 0,
        scheduler=pod["spec"].get("schedulerName") or "",
        seen_s=seen_s,
        group=group,
        volume_inputs=_volume_inputs(pod, request),
        nominated=status.get("nominatedNodeName") or "",
        why=said.get("message") or "",
        why_since=said.get("lastTransitionTime") or "",
        controller=controller_uid(pod),
    )
