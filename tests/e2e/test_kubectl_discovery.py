"""kubectl explain, api-resources, api-versions, cluster-info and version."""

import json
import re

import pytest

from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.kubectl


def test_explain_a_kind(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployment")
    assert text.startswith("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n")
    assert "Deployment enables declarative updates for Pods and ReplicaSets." in text
    assert re.search(r"^  spec\t<DeploymentSpec>", text, re.MULTILINE)


def test_explain_a_field(kubectl: Kubectl) -> None:
    text = kubectl("explain", "pod.spec.containers.resources.limits")
    assert "FIELD: limits <map[string]Quantity>" in text
    assert "Limits describes the maximum amount of compute resources allowed" in text
    text = kubectl("explain", "pod.spec.containers")
    assert re.search(r"^  name\t<string> -required-$", text, re.MULTILINE)


def test_explain_everything_below(kubectl: Kubectl) -> None:
    text = kubectl("explain", "job", "--recursive")
    assert re.search(r"^        containers\t<\[\]Container> -required-$", text, re.MULTILINE)
    assert "terminationGracePeriodSeconds" in text


def test_explain_another_version(kubectl: Kubectl) -> None:
    text = kubectl("explain", "hpa", "--api-version=autoscaling/v1")
    assert "VERSION:    v1\n" in text
    text = kubectl("explain", "hpa.spec", "--api-version=autoscaling/v1")
    assert "targetCPUUtilizationPercentage" in text


def test_explain_a_custom_kind(kubectl: Kubectl) -> None:
    text = kubectl("explain", "nodepool.spec")
    assert re.search(r"^  instanceType\t<string> -required-$", text, re.MULTILINE)


def test_explain_what_is_not_there(kubectl: Kubectl) -> None:
    said = kubectl.refused("explain", "pod.spec.nonsense")
    assert 'field "nonsense" does not exist' in said


def test_api_resources(kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", "--no-headers").splitlines()
    rows = {tuple(line.split()) for line in listed}
    assert ("pods", "po", "v1", "true", "Pod") in rows
    assert ("deployments", "deploy", "apps/v1", "true", "Deployment") in rows
    assert ("nodepools", "np", "gpupool.io/v1alpha1", "false", "NodePool") in rows
    named = kubectl("api-resources", "--namespaced=false", "--api-group=", "-o", "name").split()
    assert named == ["namespaces", "nodes", "persistentvolumes"]
    wide = kubectl("api-resources", "--api-group=apps", "-o", "wide", "--sort-by=name")
    assert "create,delete,deletecollection,get,list,patch,update,watch" in wide
    assert re.search(r"^deployments .*\ball$", wide, re.MULTILINE)


def test_api_resources_by_what_they_can(kubectl: Kubectl) -> None:
    reviews = kubectl("api-resources", "--verbs=create", "-o", "name").split()
    assert "selfsubjectaccessreviews.authorization.k8s.io" in reviews
    listable = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    assert "selfsubjectaccessreviews.authorization.k8s.io" not in listable


def test_api_versions(kubectl: Kubectl) -> None:
    listed = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "autoscaling/v2", "metrics.k8s.io/v1beta1"} <= set(listed)


def test_cluster_info(kubectl: Kubectl) -> None:
    assert "control plane" in kubectl("cluster-info")
    kubectl("cluster-info", "dump", f"--namespaces={kubectl.namespace}", "--output-directory=dump")
    assert json.loads((kubectl.folder / "dump" / "nodes.json").read_text())["items"]


def test_version(kubectl: Kubectl) -> None:
    ended = kubectl.run("version", "-o", "json")
    found = json.loads(ended.out)
    assert found["serverVersion"]["gitVersion"].startswith("v1.35.")
    assert found["serverVersion"]["minor"] == "35"
    if found["clientVersion"]["minor"] in ("34", "35", "36"):
        assert "version difference" not in ended.err
