"""A pod's volume claims -> the nodes that reach its volumes, or what the pod waits for.

A bound claim limits the pod to the nodes of its volume: by the volume's node affinity, by its zone
labels, and by the number of volumes that its driver can attach to a node. Claims that need the
scheduler for provisioning (WaitForFirstConsumer), or that only one pod may use, are reported as
unsupported. Such a pod stays pending, and is never placed wrongly.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpupool.contract.volume_zones import zone_terms
from gpupool.core.pods import AttachedVolume, PodRequest
from kubeclient.objects import Obj
from kubeclient.placement import NodeTerm, node_term

_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
MOST_VOLUMES = 2**31 - 1  # the count of a CSINode is an int32


@dataclass(frozen=True, slots=True)
class Storage:
    """All claims by (namespace, name), volumes and storage classes by name."""

    claims: Mapping[tuple[str, str], Obj]
    volumes: Mapping[str, Obj]
    classes: Mapping[str, Obj]


class ClaimUse(NamedTuple):
    name: str
    is_ephemeral: bool  # a controller makes it for this pod


def claim_uses(pod: Obj) -> Iterator[ClaimUse]:
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield ClaimUse(volume["persistentVolumeClaim"]["claimName"], is_ephemeral=False)
        elif volume.get("ephemeral"):  # its claim is named after the pod
            yield ClaimUse(f"{pod['metadata']['name']}-{volume['name']}", is_ephemeral=True)


def with_volumes(request: PodRequest, pod: Obj, storage: Storage) -> PodRequest:
    terms: list[tuple[NodeTerm, ...]] = []
    zones: list[tuple[NodeTerm, ...]] = []
    waits_for = request.waits_for
    unsupported = list(request.unsupported)
    for use in claim_uses(pod):
        claim = storage.claims.get((request.namespace, use.name))
        why_not = _why_not_usable(claim, use, request)
        if claim is None or why_not:
            waits_for = waits_for or why_not
            continue
        if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
            unsupported.append(f"claim {use.name} with ReadWriteOncePod")
        volume = bound_volume(claim, storage)
        if volume is not None:
            try:
                terms += _reach(volume)
                zones += zone_terms(volume["metadata"].get("labels") or {})
            # What a newer Kubernetes allows there may be unknown to us.
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                unsupported.append(f"the volume of claim {use.name}, which cannot be read: {error}")
        elif _waits_for_consumer(claim, storage):
            unsupported.append(f"claim {use.name} that is only bound for its first consumer")
        else:
            waits_for = waits_for or _why_unbound(claim)
    return replace(
        request,
        volume_terms=tuple(terms),
        volume_zones=tuple(zones),
        attached=attached_volumes(request.namespace, claim_uses(pod), storage),
        waits_for=waits_for,
        unsupported=tuple(unsupported),
    )


def attached_volumes(
    namespace: str, uses: Iterable[ClaimUse], storage: Storage
) -> tuple[AttachedVolume, ...]:
    """The volumes that a CSI driver attaches for a pod with these claims."""
    found: dict[AttachedVolume, None] = {}
    for use in uses:
        claim = storage.claims.get((namespace, use.name))
        volume = bound_volume(claim, storage) if claim is not None else None
        csi = (volume["spec"].get("csi") or {}) if volume is not None else {}
        if csi.get("driver") and csi.get("volumeHandle"):
            found[AttachedVolume(csi["driver"], csi["volumeHandle"])] = None
    return tuple(sorted(found))


def volume_limits(csi_node: Obj) -> dict[str, int]:
    """How many volumes each driver can attach to the node. Drivers without a limit are left out."""
    limits = {}
    for driver in (csi_node.get("spec") or {}).get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        if isinstance(count, int):
            limits[str(driver["name"])] = min(max(count, 0), MOST_VOLUMES)
    return limits


def bound_volume(claim: Obj, storage: Storage) -> Obj | None:
    """The volume, if claim and volume name each other and the binding is complete.

    That a volume of the name exists is not enough: it may belong to another claim, or to an earlier
    claim of the same name.
    """
    metadata, volume = claim["metadata"], storage.volumes.get(claim["spec"].get("volumeName") or "")
    if volume is None or not _is_complete(claim):
        return None
    ref = volume["spec"].get("claimRef") or {}
    wanted = (metadata.get("namespace", ""), metadata.get("name", ""), metadata.get("uid", ""))
    return volume if (ref.get("namespace"), ref.get("name"), ref.get("uid")) == wanted else None


def _is_complete(claim: Obj) -> bool:
    notes = claim["metadata"].get("annotations") or {}
    phase = (claim.get("status") or {}).get("phase")
    return phase != "Lost" and (_BIND_COMPLETED in notes or phase == "Bound")


def _why_not_usable(claim: Obj | None, use: ClaimUse, request: PodRequest) -> str:
    """In the words of kube-scheduler; empty if the pod may use the claim."""
    if claim is None and use.is_ephemeral:
        return (
            "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            f' "{use.name}"'
        )
    if claim is None:
        return f'persistentvolumeclaim "{use.name}" not found'
    if "deletionTimestamp" in claim["metadata"]:
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    if use.is_ephemeral and not any(
        owner.get("controller") and owner.get("uid") == request.uid
        for owner in claim["metadata"].get("ownerReferences") or ()
    ):
        where = request.namespace
        return (
            f"PVC {where}/{use.name} was not created for pod {where}/{request.name}"
            " (pod is not owner)"
        )
    return ""


def _why_unbound(claim: Obj) -> str:
    name, volume = claim["metadata"].get("name", ""), claim["spec"].get("volumeName") or ""
    if volume and (claim.get("status") or {}).get("phase") == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    return _UNBOUND


def _reach(volume: Obj) -> Iterator[tuple[NodeTerm, ...]]:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required:
        yield tuple(node_term(term) for term in required["nodeSelectorTerms"])


def _waits_for_consumer(claim: Obj, storage: Storage) -> bool:
    if claim["spec"].get("volumeName"):
        return False  # statically bound: its volume will appear
    named = storage.classes.get(claim["spec"].get("storageClassName") or "")
    return named is not None and named.get("volumeBindingMode") == "WaitForFirstConsumer"
