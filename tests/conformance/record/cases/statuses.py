"""What of an object's metadata can be changed through its status."""

from __future__ import annotations

from tests.conformance.record.case import APPLY, Case, Json, Request, patch, post
from tests.conformance.record.objects import job, obj
from tests.conformance.record.samples import SAMPLES
from tests.conformance.record.samples.sample import Sample

_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1"}
CHANGES = {
    "labels": {"by": "status"},
    "annotations": {"by": "status"},
    "finalizers": ["example.com/by-status"],
    "ownerReferences": [_OWNER],
}
_KINDS = (
    "Namespace",
    "Pod-minimal",
    "Node-minimal",
    "ReplicationController",
    "ResourceQuota",
    "Service-clusterip",
    "Deployment-minimal",
    "ReplicaSet-minimal",
    "StatefulSet-minimal",
    "Job-minimal",
    "CronJob-minimal",
    "Ingress",
    "PodDisruptionBudget-min",
    "VolumeAttachment",
    "ValidatingAdmissionPolicy",
)
BY_LABEL = {sample.label: sample for sample in SAMPLES}


def place(sample: Sample) -> tuple[str, Json]:
    """Where, and what: in a namespace of the case, or with the case's name."""
    path = sample.path.replace("sample-namespace", "{ns}")
    name = "sample" if "{ns}" in path else "{ns}-sample"
    metadata = {key: value for key, value in sample.body["metadata"].items() if key != "namespace"}
    return path, sample.body | {"metadata": metadata | {"name": name}}


def through_status(path: str, body: Json) -> Request:
    return patch(f"{path}/{body['metadata']['name']}/status", {"metadata": CHANGES})


def _case(label: str) -> Case:
    path, body = place(BY_LABEL[label])
    return Case(f"status metadata: {label}", through_status(path, body), (post(path, body),))


_JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
_BAD = {"labels": {"a b": "c"}, "annotations": {"": "x"}}
_APPLIED = obj("batch/v1", "Job", "j", metadata={"annotations": {"a": "b"}}, status={"active": 1})

CASES = (
    *(_case(label) for label in _KINDS),
    Case(
        "status metadata: bad labels and annotations",
        patch(f"{_JOBS}/j/status", {"metadata": _BAD}),
        (post(_JOBS, job("j")),),
    ),
    Case(
        "status metadata: a name and a uid",
        patch(f"{_JOBS}/j/status", {"metadata": {"uid": "1", "generation": 9}}),
        (post(_JOBS, job("j")),),
    ),
    Case(
        "status metadata: applied",
        Request(
            "PATCH",
            f"{_JOBS}/j/status?fieldManager=m",
            _APPLIED,
            {"Content-Type": APPLY},
        ),
        (post(_JOBS, job("j")),),
    ),
)
