"""What `make conformance` found to be different once, as plain requests to our own server."""

import json
from collections.abc import Iterator

import pytest

from tests.conformance.record import replay
from tests.conformance.record.case import MERGE
from tests.conformance.record.client import Client
from tests.conformance.record.objects import container, deployment, pod

GPU = "nvidia.com/gpu"
_NAMESPACE = "found"
_AT = f"/api/v1/namespaces/{_NAMESPACE}"
_MERGE = {"Content-Type": MERGE}
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{_NAMESPACE}/deployments"


@pytest.fixture
def room(client: Client) -> Iterator[Client]:
    for step in replay.namespace_steps(_NAMESPACE):
        client.send(step.method, step.path, step.body)
    yield client
    client.send("DELETE", f"{_DEPLOYMENTS}/d")
    client.send("DELETE", f"{_AT}/pods/p?gracePeriodSeconds=0")


def _generation(client: Client, path: str, annotations: dict[str, str]) -> int:
    change = {"metadata": {"annotations": annotations, "labels": {"l": annotations["a"]}}}
    answer = client.send("PATCH", path, change, _MERGE)
    assert answer.status == 200, answer.response
    assert answer.response["metadata"]["annotations"] == annotations
    found: int = answer.response["metadata"]["generation"]
    return found


def test_a_deployment_counts_changes_of_its_annotations(room: Client) -> None:
    room.send("POST", _DEPLOYMENTS, deployment("d"))
    assert _generation(room, f"{_DEPLOYMENTS}/d", {"a": "1"}) == 2


def test_the_status_of_a_deployment_takes_annotations_that_do_not_count(room: Client) -> None:
    room.send("POST", _DEPLOYMENTS, deployment("d"))
    assert _generation(room, f"{_DEPLOYMENTS}/d/status", {"a": "1"}) == 1
    assert room.send("GET", f"{_DEPLOYMENTS}/d").response["metadata"].get("labels") is None


@pytest.mark.parametrize("door", ["resize", "ephemeralcontainers"])
def test_doors_to_parts_of_a_pod_show_the_pod(room: Client, door: str) -> None:
    room.send("POST", f"{_AT}/pods", pod("p"))
    found = room.send("GET", f"{_AT}/pods/p/{door}")
    assert (found.status, found.response["kind"]) == (200, "Pod")


def test_a_new_size_does_not_change_the_class_of_a_pod(room: Client) -> None:
    room.send("POST", f"{_AT}/pods", pod("p"))
    sized = container(resources={"requests": {"cpu": "1"}})
    answer = room.send("PATCH", f"{_AT}/pods/p/resize", {"spec": {"containers": [sized]}}, _MERGE)
    assert answer.status == 422
    assert answer.response["message"] == (
        'Pod "p" is invalid: spec: Invalid value: "BestEffort": '
        "Pod QOS Class may not change as a result of resizing"
    )


def test_a_new_size_gives_no_gpus(room: Client) -> None:
    cpu = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    room.send("POST", f"{_AT}/pods", pod("p", container(resources=cpu)))
    more = {"requests": {"cpu": "1", GPU: "1"}, "limits": {"cpu": "2", GPU: "1"}}
    change = {"spec": {"containers": [container(resources=more)]}}
    answer = room.send("PATCH", f"{_AT}/pods/p/resize", change, _MERGE)
    assert answer.status == 422
    assert answer.response["message"] == (
        'Pod "p" is invalid: spec: Forbidden: only cpu and memory resources are mutable'
    )


def test_whoever_reads_endpoints_hears_that_they_are_deprecated(room: Client) -> None:
    found = room.send("GET", f"{_AT}/endpoints")
    assert found.warnings == (
        '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"',
    )


@pytest.mark.parametrize(("token", "byte"), [("x", 0), ("abcde", 4), ("ab!d", 2)])
def test_a_bad_continue_token_is_refused_in_the_words_of_go(
    room: Client, token: str, byte: int
) -> None:
    message = room.send("GET", f"{_AT}/pods?limit=1&continue={token}").response["message"]
    assert message.endswith(f"illegal base64 data at input byte {byte}")


def test_a_patch_of_the_wrong_type_is_shown_as_it_was_sent(client: Client) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    client.send("POST", path, {"metadata": {"name": "patched"}})
    sent = '{"data":{"k":[1]}}'
    for media in ("merge-patch", "strategic-merge-patch"):
        headers = {"Content-Type": f"application/{media}+json"}
        answer = client.send("PATCH", f"{path}/patched", sent, headers)
        assert answer.status == 422
        (cause,) = answer.response["details"]["causes"]
        assert cause["field"] == "patch"
        assert cause["message"] == (
            f"Invalid value: {json.dumps(sent)}: json: cannot unmarshal array into Go struct field "
            "ConfigMap.data of type string"
        )
