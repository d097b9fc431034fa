"""kubectl wait: for conditions, for fields, for creation and for the end."""

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.objects import config_map, container, deployment, pod

pytestmark = pytest.mark.kubectl


def test_for_a_condition_that_is_there(kubectl: Kubectl) -> None:
    kubectl.apply(pod("web"))
    assert kubectl.wait("condition=Ready", "pod/web") == "pod/web condition met\n"
    assert kubectl.wait("condition=ready=true", "pod", "-l", "app=web") == "pod/web condition met\n"
    assert kubectl.wait("condition=Ready", "pods", "--all") == "pod/web condition met\n"


def test_for_a_condition_that_comes_later(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 0))
    path = "jsonpath={.status.readyReplicas}=2"
    with kubectl.start("wait", f"--for={path}", "deployment/web", "--timeout=20s") as waiting:
        kubectl("scale", "deployment/web", "--replicas=2")
        assert waiting.ends() == 0
        assert waiting.text() == "deployment.apps/web condition met\n"


def test_for_a_field_to_be_there_at_all(kubectl: Kubectl) -> None:
    kubectl.apply(pod("web"))
    kubectl.wait("jsonpath={.status.podIP}", "pod/web")
    kubectl.wait("jsonpath={.status.phase}=Running", "pod/web")


def test_for_deletion(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c"))
    with kubectl.start("wait", "--for=delete", "configmap/c", "--timeout=20s") as waiting:
        kubectl("delete", "configmap", "c")
        assert waiting.ends() == 0
    kubectl.wait("delete", "configmap/c")


def test_for_creation(kubectl: Kubectl) -> None:
    with kubectl.start("wait", "--for=create", "configmap/c", "--timeout=20s") as waiting:
        kubectl.apply(config_map("c"))
        assert waiting.ends() == 0


def test_not_longer_than_the_timeout(kubectl: Kubectl) -> None:
    kubectl.apply(pod("big", container(resources={"requests": {"cpu": "500"}})))
    said = kubectl.refused("wait", "--for=condition=Ready", "pod/big", "--timeout=1s")
    assert "timed out waiting for the condition on pods/big" in said


def test_for_what_is_not_there(kubectl: Kubectl) -> None:
    said = kubectl.refused("wait", "--for=condition=Ready", "pod/nobody", "--timeout=1s")
    assert 'pods "nobody" not found' in said
