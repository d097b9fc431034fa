"""kubectl auth and --as: who is it, and may they."""

import json

import pytest

from tests.e2e.kubectl import Kubectl, stream_of
from tests.e2e.objects import config_map, pod

pytestmark = pytest.mark.kubectl


def test_whoami(kubectl: Kubectl) -> None:
    shown = kubectl("auth", "whoami")
    assert "system:masters" in shown
    assert "ann" in kubectl("auth", "whoami", "--as=ann", "--as-group=staff")


def test_an_administrator_may_everything(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "*", "*", "--all-namespaces") == "yes\n"
    assert kubectl("auth", "can-i", "get", "/metrics") == "yes\n"


def test_nobody_may_anything(kubectl: Kubectl) -> None:
    ended = kubectl.run("auth", "can-i", "get", "pods", "--as=ann")
    assert (ended.code, ended.out) == (1, "no\n")
    said = kubectl.refused("get", "pods", "--as=ann")
    assert said == (
        'Error from server (Forbidden): pods is forbidden: User "ann" cannot list resource "pods" '
        f'in API group "" in the namespace "{kubectl.namespace}"\n'
    )


def test_a_role_gives_exactly_what_it_says(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "readers", "--role=reader", "--user=ann")
    assert kubectl("get", "pods", "--as=ann") == ""
    for verb, resource in (("get", "secrets"), ("delete", "pods"), ("create", "pods/exec")):
        assert kubectl.run("auth", "can-i", verb, resource, "--as=ann").out == "no\n"
    assert kubectl.run("auth", "can-i", "list", "pods", "--as=ann", "-A").code == 1
    listed = kubectl("auth", "can-i", "--list", "--as=ann")
    assert any(line.split()[0] == "pods" and "[get list]" in line for line in listed.splitlines())


def test_a_role_for_one_name(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("mine", a="1"), config_map("other"))
    kubectl("create", "role", "one", "--verb=get", "--resource=configmaps", "--resource-name=mine")
    kubectl("create", "rolebinding", "one", "--role=one", "--serviceaccount=x:robot")
    robot = "--as=system:serviceaccount:x:robot"
    assert kubectl("get", "configmap", "mine", robot)
    assert "forbidden" in kubectl.refused("get", "configmap", "other", robot)
    assert "forbidden" in kubectl.refused("get", "configmaps", robot)


def test_the_roles_for_people(kubectl: Kubectl) -> None:
    for role, may_create, may_bind in (
        ("view", "no", "no"),
        ("edit", "yes", "no"),
        ("admin", "yes", "yes"),
    ):
        kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}")
        who = f"--as={role}"
        assert kubectl("auth", "can-i", "list", "deployments.apps", who) == "yes\n"
        assert (
            kubectl.run("auth", "can-i", "create", "deployments.apps", who).out == f"{may_create}\n"
        )
        assert kubectl.run("auth", "can-i", "create", "rolebindings", who).out == f"{may_bind}\n"


def test_nobody_gives_away_more_than_they_have(kubectl: Kubectl) -> None:
    kubectl("create", "rolebinding", "ann", "--clusterrole=admin", "--user=ann")
    said = kubectl.refused(
        "create", "rolebinding", "more", "--clusterrole=cluster-admin", "--user=ann", "--as=ann"
    )
    assert "is attempting to grant RBAC permissions not currently held" in said


def test_reconcile_makes_and_completes_roles(kubectl: Kubectl) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": kubectl.namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    file = kubectl.write("role.yaml", role)
    assert "reconciled" in kubectl("auth", "reconcile", "-f", file)
    role["rules"] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    kubectl.write("role.yaml", role)
    kubectl("auth", "reconcile", "-f", file)
    rules = kubectl.json("get", "role", "r")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}


def test_impersonation_is_a_right_of_its_own(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot").strip()
    said = kubectl.refused("get", "pods", "--token", token, "--as=ann")
    assert "cannot impersonate resource" in said


def test_a_wrong_token_is_turned_away(kubectl: Kubectl) -> None:
    config = kubectl("config", "view", "--raw", "-o", "json")
    parsed = json.loads(config)
    parsed["users"][0]["user"] = {"token": "not-the-token"}
    path = kubectl.folder / "wrong"
    path.write_text(json.dumps(parsed))
    said = kubectl.refused("get", "pods", f"--kubeconfig={path}")
    assert "You must be logged in to the server (Unauthorized)" in said


def test_a_bound_token_ends_with_its_object(kubectl: Kubectl) -> None:
    kubectl.apply(pod("web"))
    flags = ("--bound-object-kind=Pod", "--bound-object-name=web")
    token = kubectl("create", "token", "default", *flags).strip()
    assert "default" in kubectl("auth", "whoami", "--token", token)
    kubectl("delete", "pod", "web", "--now")
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }
    answer = kubectl("create", "-o", "json", "-f", "-", stdin=stream_of(review))
    assert "authenticated" not in json.loads(answer)["status"]


def test_others_rights_can_be_reviewed(kubectl: Kubectl) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "ann",
            "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"},
        },
    }
    answer = kubectl("create", "-o", "json", "-f", "-", stdin=stream_of(review))
    assert json.loads(answer)["status"]["allowed"] is False
