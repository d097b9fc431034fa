"""A pod's volume claims -> the nodes that reach its volumes, or what the pod waits for.

A bound claim limits the pod to the nodes of its volume. Claims that need the scheduler for
provisioning (WaitForFirstConsumer), or that only one pod may use, are reported as unsupported. Such
a pod stays pending, and is never placed wrongly.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpupool.core.pods import PodRequest
from kubeclient.objects import Obj
from kubeclient.placement import NodeTerm, node_term

_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class Storage:
    """All claims by (namespace, name), volumes and storage classes by name."""

    claims: Mapping[tuple[str, str], Obj]
    volumes: Mapping[str, Obj]
    classes: Mapping[str, Obj]


def claim_names(pod: Obj) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:  # its claim is named after the pod
            yield f"{pod['metadata']['name']}-{volume['name']}"


def with_volumes(request: PodRequest, pod: Obj, storage: Storage) -> PodRequest:
    terms: list[tuple[NodeTerm, ...]] = []
    waits_for = request.waits_for
    unsupported = list(request.unsupported)
    for name in claim_names(pod):
        claim = storage.claims.get((request.namespace, name))
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            state = "not found" if claim is None else "is being deleted"
            waits_for = waits_for or f'persistentvolumeclaim "{name}" {state}'
            continue
        if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
            unsupported.append(f"claim {name} with ReadWriteOncePod")
        volume = storage.volumes.get(claim["spec"].get("volumeName") or "")
        if volume is not None:
            terms += _reach(volume)
        elif _waits_for_consumer(claim, storage):
            unsupported.append(f"claim {name} that is only bound for its first consumer")
        else:
            waits_for = waits_for or _UNBOUND
    return replace(
        request,
        volume_terms=tuple(terms),
        waits_for=waits_for,
        unsupported=tuple(unsupported),
    )


def _reach(volume: Obj) -> Iterator[tuple[NodeTerm, ...]]:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required:
        yield tuple(node_term(term) for term in required["nodeSelectorTerms"])


def _waits_for_consumer(claim: Obj, storage: Storage) -> bool:
    if claim["spec"].get("volumeName"):
        return False  # statically bound: its volume will appear
    named = storage.classes.get(claim["spec"].get("storageClassName") or "")
    return named is not None and named.get("volumeBindingMode") == "WaitForFirstConsumer"
