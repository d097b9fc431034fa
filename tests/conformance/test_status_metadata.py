"""What can be changed through status of the kinds whose answers differ elsewhere, too: as a real
kube-apiserver 1.35.8 did it. The others are among the recorded requests."""

import pytest

from tests.conformance.record.case import Case, get, post
from tests.conformance.record.cases.statuses import BY_LABEL, CHANGES, place, through_status
from tests.conformance.record.client import Client
from tests.conformance.record.replay import run

CHANGED = [
    "PersistentVolume",
    "PersistentVolumeClaim",
    "DaemonSet-minimal",
    "HorizontalPodAutoscaler-v1-minimal",
    "HorizontalPodAutoscaler-v2-minimal",
    "CustomResourceDefinition-bare",
]


def _case(label: str) -> Case:
    path, body = place(BY_LABEL[label])
    if label.startswith("CustomResourceDefinition"):  # its name says what it defines
        body["metadata"]["name"] = BY_LABEL[label].body["metadata"]["name"]
    prelude = (post(path, body), through_status(path, body))
    at = f"{path}/{body['metadata']['name']}"
    return Case(f"changed status: {label}", get(at), prelude)


@pytest.mark.parametrize("label", CHANGED)
def test_metadata_is_changed_through_status(label: str, client: Client) -> None:
    metadata = run(_case(label), client)["response"]["metadata"]
    assert metadata["labels"]["by"] == metadata["annotations"]["by"] == "status"
    assert metadata["finalizers"] == CHANGES["finalizers"]
    assert [each["name"] for each in metadata["ownerReferences"]] == ["owner"]


def test_metadata_of_a_resource_claim_is_not(client: Client) -> None:
    record = run(_case("ResourceClaim"), client)
    assert [each["status"] for each in record["prelude"]] == [201, 200]
    assert not CHANGES.keys() & record["response"]["metadata"].keys()
