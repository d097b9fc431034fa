"""kubectl edit, replace, patch, set, label, annotate and scale."""

import json
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, stream_of
from tests.e2e.objects import config_map, container, deployment, pod, service, template

pytestmark = pytest.mark.kubectl


def editor(kubectl: Kubectl, script: str) -> dict[str, str]:
    """An EDITOR that works on the file with sed."""
    path: Path = kubectl.folder / "editor"
    path.write_text(f"#!/bin/sh\nexec sed -i '{script}' \"$1\"\n")
    path.chmod(0o700)
    return {"EDITOR": str(path)}


def test_edit_changes_what_the_editor_changed(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"))
    env = editor(kubectl, "s/replicas: 1/replicas: 2/")
    assert kubectl("edit", "deployment/web", env=env) == "deployment.apps/web edited\n"
    assert kubectl.field(".spec.replicas", "deploy", "web") == "2"


def test_edit_without_a_change_says_so(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"))
    ended = kubectl.run("edit", "configmap/c", env=editor(kubectl, "s/x/x/"))
    assert "Edit cancelled, no changes made." in ended.err


def test_edit_comes_back_with_the_reason_when_it_is_refused(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"))
    ended = kubectl.run(
        "edit", "deployment/web", env=editor(kubectl, "s/replicas: 1/replicas: -1/")
    )
    assert ended.code == 1
    assert 'deployments.apps "web" is invalid' in ended.err
    kept = [path.read_text() for path in kubectl.folder.glob("kubectl*-edit-*.yaml")]
    assert any("spec.replicas: Invalid value: -1" in text for text in kept)


def test_edit_of_a_custom_object(kubectl: Kubectl) -> None:
    pool = {
        "apiVersion": "gpupool.io/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": kubectl.namespace},
        "spec": {"instanceType": "ecs.g6.large", "count": 0},
    }
    kubectl.apply(pool)
    env = editor(kubectl, "s/ecs.g6.large/ecs.g6.xlarge/")
    kubectl("edit", "nodepool", kubectl.namespace, env=env)
    path = ".spec.instanceType"
    assert kubectl.field(path, "nodepool", kubectl.namespace) == "ecs.g6.xlarge"
    kubectl("delete", "nodepool", kubectl.namespace)


def test_replace_puts_the_whole_object(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=stream_of(config_map("c", a="1", b="2")))
    said = kubectl("replace", "-f", "-", stdin=stream_of(config_map("c", b="3")))
    assert said == "configmap/c replaced\n"
    assert kubectl.json("get", "cm", "c")["data"] == {"b": "3"}


def test_replace_of_an_old_version_is_a_conflict(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=stream_of(config_map("c", a="1")))
    old = kubectl.json("get", "cm", "c")
    kubectl("label", "cm", "c", "new=yes")
    said = kubectl.refused("replace", "-f", "-", stdin=json.dumps(old))
    assert "the object has been modified; please apply your changes to the latest version" in said


def test_replace_by_force_makes_another_object(kubectl: Kubectl) -> None:
    kubectl.apply(pod("web"))
    before = kubectl.field(".metadata.uid", "pod", "web")
    other = stream_of(pod("web", container(args=["x"])))
    said = kubectl("replace", "--force", "--grace-period=0", "-f", "-", stdin=other)
    assert said.endswith("pod/web replaced\n")
    assert kubectl.field(".metadata.uid", "pod", "web") != before


def test_the_three_types_of_patch(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", template=template(container("one"), container("two"))))
    strategic = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "b"}]}}}}
    kubectl("patch", "deploy", "web", "-p", json.dumps(strategic))
    path = ".spec.template.spec.containers[*].image"
    assert kubectl.field(path, "deploy", "web") == "nginx:1 b"
    merge = {"spec": {"template": {"spec": {"containers": [container("three", "c")]}}}}
    kubectl("patch", "deploy", "web", "--type=merge", "-p", json.dumps(merge))
    assert kubectl.field(path, "deploy", "web") == "c"
    steps = [
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
    ]
    said = kubectl("patch", "deploy", "web", "--type=json", "-p", json.dumps(steps))
    assert said == "deployment.apps/web patched\n"
    assert kubectl.field(".spec.replicas", "deploy", "web") == "2"
    said = kubectl.refused("patch", "deploy", "web", "--type=json", "-p", json.dumps(steps))
    assert "the server rejected our request due to an error in our request" in said


def test_a_patch_without_effect_says_so(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"))
    said = kubectl("patch", "cm", "c", "--type=merge", "-p", '{"data":{"a":"1"}}')
    assert said == "configmap/c patched (no change)\n"


def test_a_custom_object_takes_no_strategic_patch(kubectl: Kubectl) -> None:
    said = kubectl.refused("patch", "nodepool", "workers", "-p", '{"spec":{"count":3}}')
    assert "application/strategic-merge-patch+json" in said


def test_status_is_patched_by_its_subresource(kubectl: Kubectl) -> None:
    kubectl.apply(service("web", type="ClusterIP"))
    patch = '{"status":{"conditions":[{"type":"Good","status":"True","reason":"R","message":"",'
    patch += '"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
    kubectl("patch", "service", "web", "--subresource=status", "--type=merge", "-p", patch)
    assert kubectl.field(".status.conditions[0].type", "service", "web") == "Good"
    shown = kubectl.json("get", "service", "web", "--subresource=status")
    assert shown["status"]["conditions"][0]["reason"] == "R"


def test_set_image_environment_and_resources(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"))
    said = kubectl("set", "image", "deployment/web", "web=nginx:2")
    assert said == "deployment.apps/web image updated\n"
    kubectl("set", "env", "deployment/web", "A=1", "B=2")
    kubectl("set", "env", "deployment/web", "A-")
    kubectl("set", "resources", "deployment/web", "--limits=cpu=200m", "--requests=cpu=100m")
    found = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]
    assert found["image"] == "nginx:2"
    assert found["env"] == [{"name": "B", "value": "2"}]
    assert found["resources"] == {"limits": {"cpu": "200m"}, "requests": {"cpu": "100m"}}
    assert "B=2" in kubectl("set", "env", "deployment/web", "--list")


def test_set_environment_from_a_config_map(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"), config_map("settings", a="1"))
    kubectl("set", "env", "deployment/web", "--from=configmap/settings")
    found = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]["env"]
    assert found[0]["valueFrom"]["configMapKeyRef"] == {"name": "settings", "key": "a"}


def test_set_selector_service_account_and_subject(kubectl: Kubectl) -> None:
    kubectl.apply(service("web"), deployment("web"))
    kubectl("set", "selector", "service", "web", "app=other")
    assert kubectl.json("get", "service", "web")["spec"]["selector"] == {"app": "other"}
    kubectl("create", "sa", "robot")
    kubectl("set", "serviceaccount", "deployment/web", "robot")
    path = ".spec.template.spec.serviceAccountName"
    assert kubectl.field(path, "deploy", "web") == "robot"
    kubectl("create", "rolebinding", "b", "--clusterrole=view", "--user=ann")
    kubectl("set", "subject", "rolebinding", "b", "--user=bob")
    assert kubectl.field(".subjects[*].name", "rolebinding", "b") == "ann bob"


def test_labels_are_added_changed_and_removed(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c"))
    assert kubectl("label", "cm", "c", "a=1", "b=2") == "configmap/c labeled\n"
    said = kubectl.refused("label", "cm", "c", "a=3")
    assert "'a' already has a value (1), and --overwrite is false" in said
    kubectl("label", "cm", "c", "a=3", "--overwrite")
    assert kubectl("label", "cm", "c", "b-") == "configmap/c unlabeled\n"
    assert kubectl.json("get", "cm", "c")["metadata"]["labels"] == {"a": "3"}
    assert "a=3" in kubectl("label", "cm", "c", "--list")


def test_a_bad_label_is_refused(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c"))
    assert "a valid label must be" in kubectl.refused("label", "cm", "c", "a=b c")


def test_annotations_are_added_and_removed(kubectl: Kubectl) -> None:
    kubectl.apply(pod("web"))
    kubectl("annotate", "pod", "web", "example.com/why=because")
    path = ".metadata.annotations.example\\.com/why"
    assert kubectl.field(path, "pod", "web") == "because"
    assert kubectl("annotate", "pods", "--all", "example.com/why-") == "pod/web annotated\n"
    assert kubectl.field(path, "pod", "web") == ""


def test_scale_sets_the_number(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 1))
    assert kubectl("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled\n"
    kubectl("rollout", "status", "deployment/web")
    assert kubectl.field(".status.replicas", "deploy", "web") == "3"
    said = kubectl.refused("scale", "deploy/web", "--replicas=1", "--current-replicas=9")
    assert "Expected replicas to be 9, was 3" in said
    kubectl("scale", "deployment", "--all", "--replicas=0")
    kubectl.wait("jsonpath={.status.observedGeneration}=3", "deploy/web")
    kubectl.wait("delete", "pods", "-l", "app=web")
