"""Admission policies, as kubectl meets them."""

from collections.abc import Iterator
from typing import Any

import pytest

from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, eventually, stream_of
from tests.e2e.objects import config_map, pod

pytestmark = pytest.mark.kubectl

_NODE_NAME = "authentication.kubernetes.io/node-name"


def policy(name: str, *validations: Obj, resources: list[str], **spec: Any) -> Obj:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": resources,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": list(validations),
            **spec,
        },
    }


def binding(name: str, action: str = "Deny", **spec: Any) -> Obj:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": [action], **spec},
    }


def within(namespace: str) -> Obj:
    """The cluster is shared: only this test's namespace is meant."""
    labels = {"kubernetes.io/metadata.name": namespace}
    return {"matchResources": {"namespaceSelector": {"matchLabels": labels}}}


@pytest.fixture
def name(kubectl: Kubectl) -> Iterator[str]:
    """Of a policy, its binding and a role binding, which go after the test."""
    name = f"policy-{kubectl.namespace}"
    yield name
    kinds = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    what = ",".join((*kinds, "clusterrolebindings"))
    kubectl("delete", what, name, "--ignore-not-found")


def test_a_policy_refuses_and_is_shown(kubectl: Kubectl, name: str) -> None:
    small = {"expression": "object.data.size != 'big'", "message": "nothing big here"}
    ref = {"name": "limits", "namespace": "x", "parameterNotFoundAction": "Allow"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    kubectl.apply(policy(name, small, resources=["configmaps"]))
    kubectl.apply(binding(name, **within(kubectl.namespace)))
    said = kubectl.refused("create", "configmap", "c", "--from-literal=size=big")
    assert (
        f"configmaps \"c\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding "
        f"'{name}' denied request: nothing big here" in said
    )
    kubectl("create", "configmap", "c", "--from-literal=size=small")
    row = kubectl("get", "validatingadmissionpolicy", name).splitlines()
    assert row[0].split() == ["NAME", "VALIDATIONS", "PARAMKIND", "AGE"]
    assert row[1].split()[:3] == [name, "1", "<unset>"]
    kubectl.apply(policy(name, small, resources=["configmaps"], paramKind=kind))
    kubectl.apply(binding(name, **within(kubectl.namespace), paramRef=ref))
    row = kubectl("get", "validatingadmissionpolicybinding", name).splitlines()
    assert row[0].split() == ["NAME", "POLICYNAME", "PARAMREF", "AGE"]
    assert row[1].split()[:3] == [name, name, "x/limits"]
    path = ".status.observedGeneration"
    eventually(lambda: kubectl.field(path, "validatingadmissionpolicy", name) == "2")


def test_a_policy_only_warns(kubectl: Kubectl, name: str) -> None:
    kubectl.apply(policy(name, {"expression": "false"}, resources=["configmaps"]))
    kubectl.apply(binding(name, "Warn", **within(kubectl.namespace)))
    ended = kubectl.run("create", "-f", "-", stdin=stream_of(config_map("c")))
    assert ended.code == 0
    assert f"Warning: Validation failed for ValidatingAdmissionPolicy '{name}'" in ended.err


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("object.spec.replicas <", "Syntax error"),
        ("objekt.spec == 1", "undeclared reference to 'objekt' (in container '')"),
        ("request.user == 'a'", "undefined field 'user'"),
        ("'text'", "must evaluate to bool but got string"),
        ("object.spec.enabled", "must evaluate to bool but got dyn"),
    ],
)
def test_an_expression_that_is_none_is_refused(
    kubectl: Kubectl, expression: str, said: str
) -> None:
    made = policy("broken", {"expression": expression}, resources=["pods"])
    refused = kubectl.refused("create", "-f", "-", stdin=stream_of(made))
    assert "spec.validations[0].expression: Invalid value" in refused
    assert said in refused


def test_a_policy_holds_an_agent_to_its_own_node(kubectl: Kubectl, name: str) -> None:
    """By the claims of a token that is bound to a pod."""
    user = f"system:serviceaccount:{kubectl.namespace}:default"
    labels = "object.metadata.?labels.orValue({})"
    old = "oldObject.metadata.?labels.orValue({})"
    own = {
        "expression": f"request.userInfo.extra[?'{_NODE_NAME}'].orValue([]) "
        "== [object.metadata.name]",
        "messageExpression": "'not the node of ' + request.userInfo.username",
        "reason": "Forbidden",
    }
    prefix = {
        "expression": "variables.changed.all(k, k.startsWith('example.com/'))",
        "messageExpression": "'not these: ' + variables.changed.join(', ')",
    }
    changed = f"{labels}.map(k, k).filter(k, !(k in {old}) || {labels}[k] != {old}[k])"
    mine = {"name": "mine", "expression": f"request.userInfo.username == '{user}'"}
    kubectl.apply(
        policy(
            name,
            own,
            prefix,
            {"expression": "object.spec == oldObject.spec", "message": "not the spec"},
            resources=["nodes", "nodes/status"],
            matchConditions=[mine],
            variables=[{"name": "changed", "expression": changed}],
        ),
        binding(name),
        pod("agent"),
    )
    kubectl("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", f"--user={user}")
    node = eventually(lambda: kubectl.field(".spec.nodeName", "pod", "agent"))
    others = [each for each in kubectl.names("nodes") if each != node]
    bound = ("--bound-object-kind=Pod", "--bound-object-name=agent")
    token = ("--token", kubectl("create", "token", "default", *bound).strip())
    unbound = ("--token", kubectl("create", "token", "default").strip())
    kubectl("label", "node", node, "example.com/a=1", *token)
    for refused, said in (
        (("label", "node", others[0], "example.com/a=1", *token), f"not the node of {user}"),
        (("label", "node", node, "example.com/a=2", "--overwrite", *unbound), "not the node of"),
        (("label", "node", node, "b=1", *token), "not these: b"),
        (("taint", "node", node, "a=b:NoSchedule", *token), "not the spec"),
    ):
        assert said in kubectl.refused(*refused)
    kubectl("label", "node", node, "example.com/a-")
