"""kubectl describe and kubectl events: what people read when something is wrong."""

import re

import pytest

from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.objects import budget, config_map, container, deployment, pod, service

pytestmark = pytest.mark.kubectl


def value(text: str, key: str) -> str:
    """What stands behind `key:` in a description."""
    found = re.search(rf"^\s*{re.escape(key)}:[ \t]*(.*)$", text, re.MULTILINE)
    assert found, f"no {key} in:\n{text}"
    return found[1].strip()


def event_reasons(text: str) -> list[str]:
    lines = text.partition("Events:")[2].splitlines()[3:]
    return [line.split()[1] for line in lines if line.strip()]


def described(kubectl: Kubectl, text: str, *what: str) -> str:
    """The description, once this text is in it: events come a little later."""
    return eventually(lambda: shown if text in (shown := kubectl("describe", *what)) else "")


def test_a_pod_is_described_with_its_events(live: Kubectl) -> None:
    limits = {"requests": {"cpu": "250m"}, "limits": {"memory": "1Gi"}}
    live.apply(pod("web", container(resources=limits)))
    live.wait("condition=Ready", "pod/web")
    text = described(live, "Started", "pod", "web")
    assert value(text, "Status") == "Running"
    assert value(text, "QoS Class") == "Burstable"
    assert value(text, "Image") == "nginx:1"
    assert value(text, "memory") == "1Gi"
    assert re.search(r"PodScheduled\s+True", text)
    assert event_reasons(text) == ["Scheduled", "Pulled", "Created", "Started"]


def test_a_pod_that_fits_nowhere_says_why(kubectl: Kubectl) -> None:
    kubectl.apply(pod("big", container(resources={"requests": {"cpu": "500"}})))
    kubectl.wait("condition=PodScheduled=False", "pod/big")
    text = described(kubectl, "FailedSch", "pod", "big")
    assert value(text, "Status") == "Pending"
    assert (
        "0/4 nodes are available: 1 node(s) had untolerated taint "
        "{node-role.kubernetes.io/master: }, 3 Insufficient cpu." in text
    )


def test_a_node_is_described_with_its_pods(kubectl: Kubectl) -> None:
    kubectl.apply(pod("web", container(resources={"requests": {"cpu": "250m"}})))
    kubectl.wait("condition=Ready", "pod/web")
    node = kubectl.field(".spec.nodeName", "pod", "web")
    text = kubectl("describe", "node", node)
    assert re.search(rf"{kubectl.namespace}\s+web\s+250m", text)
    assert value(text, "Unschedulable") == "false"
    assert value(text, "HolderIdentity") == node
    assert re.search(r"^\s+Ready\s+True", text, re.MULTILINE)
    assert re.search(r"^\s+cpu\s+\d+m? \(\d+%\)", text, re.MULTILINE)


def test_a_deployment_is_described(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2))
    kubectl("rollout", "status", "deployment/web")
    text = described(kubectl, "ScalingRepl", "deploy", "web")
    assert value(text, "Replicas") == (
        "2 desired | 2 updated | 2 total | 2 available | 0 unavailable"
    )
    assert re.search(r"Available\s+True\s+MinimumReplicasAvailable", text)
    assert re.search(r"Progressing\s+True\s+NewReplicaSetAvailable", text)
    assert value(text, "NewReplicaSet").startswith("web-")


def test_a_service_is_described_with_its_endpoints(kubectl: Kubectl) -> None:
    kubectl.apply(service("web"), pod("a"))
    kubectl.wait("condition=Ready", "pod/a")
    address = kubectl.field(".status.podIP", "pod", "a")
    text = described(kubectl, address, "service", "web")
    assert value(text, "Endpoints") == f"{address}:80"
    assert value(text, "Selector") == "app=web"


def test_other_kinds_are_described(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("settings", colour="blue"), budget("web", minAvailable=1))
    kubectl("create", "secret", "generic", "key", "--from-literal=a=12345")
    assert "colour:\n----\nblue" in kubectl("describe", "configmap", "settings")
    assert value(kubectl("describe", "secret", "key"), "a") == "5 bytes"
    assert value(kubectl("describe", "pdb", "web"), "Min available") == "1"
    assert value(kubectl("describe", "namespace", kubectl.namespace), "Status") == "Active"
    assert value(kubectl("describe", "serviceaccount", "default"), "Name") == "default"
    rule = r"\*\.\*\s+\[\]\s+\[\]\s+\[\*\]"
    assert re.search(rule, kubectl("describe", "clusterrole", "cluster-admin"))


def test_a_custom_kind_is_described(kubectl: Kubectl) -> None:
    text = kubectl("describe", "nodepool", "workers")
    assert value(text, "Phase") == "Active"
    assert value(text, "Instance Type") == "ecs.g6.8xlarge"


def test_events_are_listed_in_both_ways(live: Kubectl) -> None:
    live.apply(pod("web"))
    live.wait("condition=Ready", "pod/web")

    def reasons(*arguments: str) -> set[str]:
        return set(live(*arguments, "-o", "jsonpath={.items[*].reason}").split())

    wanted = {"Scheduled", "Pulled", "Created", "Started"}
    eventually(lambda: reasons("get", "events") == wanted)
    assert reasons("get", "events.events.k8s.io") == wanted
    assert reasons("events", "--for", "pod/web") == wanted
    only = "--field-selector=involvedObject.name=web,reason=Started,type=Normal"
    assert reasons("get", "events", only) == {"Started"}
    assert "Started" in live("events", "--for", "pod/web", "--types=Normal")


def test_new_style_events_are_seen_through_the_old_api(kubectl: Kubectl) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Test",
        "reason": "Tested",
        "type": "Normal",
        "note": "it was tried",
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-0",
        "regarding": {"kind": "Pod", "name": "web", "namespace": kubectl.namespace},
    }
    kubectl.apply(event)
    old = kubectl.json("get", "events.v1.", "e")
    assert (old["message"], old["involvedObject"]["name"]) == ("it was tried", "web")
    new = kubectl.json("get", "events.v1.events.k8s.io", "e")
    assert (new["note"], new["regarding"]["name"]) == ("it was tried", "web")


def test_events_are_watched(live: Kubectl) -> None:
    with live.start("events", "--watch") as watch:
        live.apply(pod("web"))
        watch.shows("Started")
