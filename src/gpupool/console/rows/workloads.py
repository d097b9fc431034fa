"""A Deployment or StatefulSet as lists show it."""

from dataclasses import dataclass

from kubeclient.objects import Obj


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    namespace: str
    name: str
    wanted: int
    ready: int
    images: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    created: str
    is_ending: bool


def workload_row(workload: Obj) -> WorkloadRow:
    metadata, spec = workload["metadata"], workload.get("spec") or {}
    status = workload.get("status") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    wanted = spec.get("replicas")
    return WorkloadRow(
        namespace=metadata["namespace"],
        name=metadata["name"],
        wanted=1 if wanted is None else int(wanted),
        ready=int(status.get("readyReplicas") or 0),
        images=tuple(str(each.get("image") or "") for each in pod.get("containers") or ()),
        labels=tuple(sorted((metadata.get("labels") or {}).items())),
        created=metadata.get("creationTimestamp") or "",
        is_ending="deletionTimestamp" in metadata,
    )
