"""kubectl apply --server-side: fields have owners, and disputes are shown."""

import json

import pytest

from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, stream_of
from tests.e2e.objects import config_map, container, deployment, template

pytestmark = pytest.mark.kubectl

SERVER_SIDE = ("--server-side",)


def managers(kubectl: Kubectl, *what: str) -> dict[tuple[str, str], Obj]:
    """fieldsV1 by manager and operation."""
    shown = json.loads(kubectl("get", *what, "-o", "json", "--show-managed-fields"))
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in shown["metadata"]["managedFields"]
    }


def test_it_creates_and_applies_again(kubectl: Kubectl) -> None:
    said = "deployment.apps/web serverside-applied\n"
    assert kubectl.apply(deployment("web"), flags=SERVER_SIDE) == said
    assert kubectl.apply(deployment("web", 2), flags=SERVER_SIDE) == said
    assert kubectl.field(".spec.replicas", "deploy", "web") == "2"
    assert "last-applied" not in kubectl("get", "deploy", "web", "-o", "yaml")


def test_the_applier_owns_what_it_sent(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"), flags=SERVER_SIDE)
    assert managers(kubectl, "cm", "c") == {("kubectl", "Apply"): {"f:data": {"f:a": {}}}}


def test_what_is_no_longer_applied_is_removed(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1", b="2"), flags=SERVER_SIDE)
    kubectl.apply(config_map("c", b="2"), flags=SERVER_SIDE)
    assert kubectl.json("get", "cm", "c")["data"] == {"b": "2"}


def test_two_managers_share_an_object(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"), flags=(*SERVER_SIDE, "--field-manager=one"))
    kubectl.apply(config_map("c", b="2"), flags=(*SERVER_SIDE, "--field-manager=two"))
    assert kubectl.json("get", "cm", "c")["data"] == {"a": "1", "b": "2"}
    assert set(managers(kubectl, "cm", "c")) == {("one", "Apply"), ("two", "Apply")}


def test_a_dispute_is_refused_and_can_be_forced(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web"), flags=SERVER_SIDE)
    kubectl("scale", "deployment/web", "--replicas=3")
    said = kubectl.refused("apply", *SERVER_SIDE, "-f", "-", stdin=stream_of(deployment("web")))
    assert "Apply failed with 1 conflict: conflict with" in said
    assert 'with subresource "scale" using apps/v1: .spec.replicas' in said
    kubectl.apply(deployment("web"), flags=(*SERVER_SIDE, "--force-conflicts"))
    assert kubectl.field(".spec.replicas", "deploy", "web") == "1"


def test_giving_up_a_field_leaves_it_to_its_other_owner(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", 2), flags=(*SERVER_SIDE, "--field-manager=one"))
    kubectl.apply(deployment("web", 2), flags=(*SERVER_SIDE, "--field-manager=two"))
    without = deployment("web")
    del without["spec"]["replicas"]
    kubectl.apply(without, flags=(*SERVER_SIDE, "--field-manager=one"))
    assert kubectl.field(".spec.replicas", "deploy", "web") == "2"


def test_items_of_a_list_have_owners_of_their_own(kubectl: Kubectl) -> None:
    first = deployment("web", template=template(container("one")))
    second = deployment("web", template=template(container("two")))
    kubectl.apply(first, flags=(*SERVER_SIDE, "--field-manager=one"))
    kubectl.apply(second, flags=(*SERVER_SIDE, "--field-manager=two"))
    path = ".spec.template.spec.containers[*].name"
    assert kubectl.field(path, "deploy", "web") == "one two"


def test_an_object_of_the_client_side_migrates(kubectl: Kubectl) -> None:
    kubectl.apply(deployment("web", template=template(container("one"), container("two"))))
    changed = deployment("web", template=template(container("one", "nginx:2")))
    kubectl.apply(changed, flags=SERVER_SIDE)
    found = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"]
    assert [(each["name"], each["image"]) for each in found] == [("one", "nginx:2")]
    owners = set(managers(kubectl, "deploy", "web"))
    assert ("kubectl", "Apply") in owners
    assert ("kubectl-client-side-apply", "Update") not in owners


def test_and_back_to_the_client_side(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1", b="2"))
    kubectl.apply(config_map("c", a="1", b="3"), flags=SERVER_SIDE)
    kubectl.apply(config_map("c", a="1"))
    assert kubectl.json("get", "cm", "c")["data"] == {"a": "1"}


def test_a_dry_run_stores_nothing(kubectl: Kubectl) -> None:
    said = kubectl.apply(config_map("c"), flags=(*SERVER_SIDE, "--dry-run=server"))
    assert said == "configmap/c serverside-applied (server dry run)\n"
    assert "c" not in kubectl.names("configmaps")


def test_diff_works_on_the_server_side(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"), flags=SERVER_SIDE)
    ended = kubectl.run("diff", *SERVER_SIDE, "-f", "-", stdin=stream_of(config_map("c", a="2")))
    assert ended.code == 1
    assert '-  a: "1"\n+  a: "2"\n' in ended.out


def test_a_custom_object_is_applied(kubectl: Kubectl) -> None:
    pool = {
        "apiVersion": "gpupool.io/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": kubectl.namespace},
        "spec": {"instanceType": "ecs.g6.large", "count": 0, "labels": {"a": "1"}},
    }
    kubectl.apply(pool, flags=SERVER_SIDE)
    pool["spec"] = {"instanceType": "ecs.g6.large", "count": 0, "labels": {"b": "2"}}
    kubectl.apply(pool, flags=SERVER_SIDE)
    assert kubectl.json("get", "nodepool", kubectl.namespace)["spec"]["labels"] == {"b": "2"}
    kubectl("delete", "nodepool", kubectl.namespace)
