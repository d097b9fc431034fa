"""A revision of a workload: how its pods were to be, once. Pure.

Deployments keep theirs as ReplicaSets, StatefulSets and DaemonSets as ControllerRevisions.
"""

from dataclasses import dataclass, field

from gpupool.console.rows.workloads import images_of, owner_of
from kubeclient.objects import Obj

REVISION = "deployment.kubernetes.io/revision"
CAUSE = "kubernetes.io/change-cause"
MOST_DIGITS = 15  # of a number
_HASH = "pod-template-hash"  # of the ReplicaSet, not of what was asked for


@dataclass(frozen=True, slots=True)
class RevisionRow:
    owner: str  # uid of the workload
    name: str  # of the object that keeps it
    number: int
    created: str
    cause: str  # what somebody wrote about it
    images: tuple[str, ...]
    template: Obj = field(hash=False)  # of pods


def replica_set_row(replica_set: Obj) -> RevisionRow:
    template = (replica_set.get("spec") or {}).get("template") or {}
    return _row(replica_set, annotations_of(replica_set).get(REVISION), without_hash(template))


def controller_revision_row(revision: Obj) -> RevisionRow:
    data = revision.get("data") or {}
    template = (data.get("spec") or {}).get("template") or {}
    template = {key: value for key, value in template.items() if key != "$patch"}
    return _row(revision, revision.get("revision"), template)


def annotations_of(obj: Obj) -> dict[str, str]:
    return dict(obj["metadata"].get("annotations") or {})


def without_hash(template: Obj) -> Obj:
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != _HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _row(obj: Obj, number: object, template: Obj) -> RevisionRow:
    return RevisionRow(
        owner=owner_of(obj),
        name=obj["metadata"]["name"],
        number=_number(str(number)),
        created=obj["metadata"].get("creationTimestamp") or "",
        cause=annotations_of(obj).get(CAUSE, ""),
        images=images_of(template),
        template=template,
    )


def _number(text: str) -> int:
    """0: it is none. Anybody may write an annotation."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else 0
