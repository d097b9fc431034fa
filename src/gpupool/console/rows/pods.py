"""A pod as lists show it."""

from dataclasses import dataclass

from gpupool.console.gpus import wall_word
from gpupool.contract.held_allocation import held_allocation
from gpupool.contract.pods import pod_request
from gpupool.core.gpu import GpuAsk
from kubeclient.objects import Obj

_DONE = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class HeldShare:
    """What a container of the pod holds of one card."""

    container: str
    card: int
    uuid: str
    units: int
    memory_mib: int
    wall: str  # what holds it to its share, as the allocation says: a key of the glossary


@dataclass(frozen=True, slots=True)
class PodRow:
    namespace: str
    name: str
    uid: str
    state: str  # as `kubectl get pods` shows it: Running, Completed, CrashLoopBackOff
    is_ready: bool
    ready: int  # containers
    containers: int
    restarts: int
    node: str
    address: str
    created: str
    owner: str  # "StatefulSet cgpu-test"; empty: nobody
    images: tuple[str, ...]
    asks: tuple[GpuAsk, ...]
    shares: tuple[HeldShare, ...]
    why: str  # it waits: the message of its condition PodScheduled
    labels: tuple[tuple[str, str], ...]

    @property
    def waits(self) -> bool:
        """Has no node, and would like one."""
        return not self.node and self.state not in ("Completed", "Failed", "Terminating")

    @property
    def is_over(self) -> bool:
        return self.state in ("Completed", "Succeeded", "Failed", "Error")


def pod_row(pod: Obj) -> PodRow:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    asks = pod_request(pod).gpus
    states = status.get("containerStatuses") or ()
    return PodRow(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        state=_state(metadata, status),
        is_ready=_condition(status, "Ready").get("status") == "True",
        ready=sum(bool(each.get("ready")) for each in states),
        containers=len(spec["containers"]),
        restarts=sum(each.get("restartCount") or 0 for each in states),
        node=spec.get("nodeName") or "",
        address=status.get("podIP") or "",
        created=metadata.get("creationTimestamp") or "",
        owner=_owner(metadata),
        images=tuple(each.get("image") or "" for each in spec["containers"]),
        asks=asks,
        shares=_shares(pod, asks) if spec.get("nodeName") and asks else (),
        why="" if spec.get("nodeName") else _condition(status, "PodScheduled").get("message") or "",
        labels=tuple(sorted((metadata.get("labels") or {}).items())),
    )


def _state(metadata: Obj, status: Obj) -> str:
    """As kubectl says it: the first trouble of a container, else the phase."""
    if "deletionTimestamp" in metadata:
        return "Terminating"
    phase = str(status.get("reason") or status.get("phase") or "Pending")
    for each in (*(status.get("initContainerStatuses") or ()), *(_containers(status))):
        state = each.get("state") or {}
        if reason := (state.get("waiting") or {}).get("reason"):
            return str(reason)
        if phase in _DONE and (ended := state.get("terminated")):
            return str(ended.get("reason") or phase)
    return phase


def _containers(status: Obj) -> tuple[Obj, ...]:
    return tuple(status.get("containerStatuses") or ())


def _condition(status: Obj, kind: str) -> Obj:
    for each in status.get("conditions") or ():
        if each.get("type") == kind:
            return dict(each)
    return {}


def _owner(metadata: Obj) -> str:
    for each in metadata.get("ownerReferences") or ():
        if each.get("controller"):
            return f"{each.get('kind', '')} {each.get('name', '')}"
    return ""


def _shares(pod: Obj, asks: tuple[GpuAsk, ...]) -> tuple[HeldShare, ...]:
    return tuple(
        HeldShare(
            gpus.container,
            share.index,
            share.uuid,
            share.units,
            share.memory_mib,
            wall_word(gpus.wall),
        )
        for gpus in held_allocation(pod, asks).containers
        for share in gpus.shares
    )
