"""Whoever writes a policy or a binding must be allowed to read its parameters."""

from collections.abc import Iterable
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.kinds import Kinds, builtin_kinds
from localkube.apiserver.request import User
from localkube.apiserver.security.policy_params import param_kind_errors, param_ref_errors
from localkube.apiserver.security.rbac import GROUP, Authorizer

KINDS = Kinds(builtin_kinds())
ANN, ADMIN = User("ann"), User("admin", ("system:masters",))
POLICY: Obj = {"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}


class _NoPods:
    def node_of_pod(self, namespace: str, name: str) -> str | None:
        return None

    def uid(self, resource: str, namespace: str, name: str) -> str | None:
        return None

    def pods_on(self, node: str) -> Iterable[Obj]:
        return ()

    def spec_of(self, resource: str, name: str) -> Obj:
        return {}


def allowing(**rule: Any) -> Authorizer:
    """Ann may do what the rule says, and nothing else."""
    found = Authorizer(_NoPods())
    role = {"rules": [{"apiGroups": [""], "resources": ["configmaps"], **rule}]}
    binding = {
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "ann"}],
    }
    found.replace("clusterroles", "", "r", {"metadata": {"name": "r"}, **role})
    found.replace("clusterrolebindings", "", "r", {"metadata": {"name": "r"}, **binding})
    return found


@pytest.mark.parametrize(
    ("rule", "refused"),
    [({"verbs": ["get"]}, False), ({"verbs": ["list"]}, True),
     ({"verbs": ["get"], "resourceNames": ["c"]}, True)],
)  # fmt: skip
def test_a_policy_needs_to_get_all_objects_of_the_kind(rule: Any, refused: bool) -> None:
    errors = param_kind_errors(allowing(**rule), KINDS, ANN, POLICY, None)
    assert bool(errors) is refused
    if refused:
        assert errors[0].field == "spec.paramKind"
        text = 'user ann must have "get" permission on all objects of the referenced paramKind'
        assert text in errors[0].message


def test_administrators_and_old_references_are_not_asked() -> None:
    nothing = allowing(verbs=["list"])
    assert param_kind_errors(nothing, KINDS, ADMIN, POLICY, None) == []
    assert param_kind_errors(nothing, KINDS, ANN, POLICY, POLICY) == []
    assert param_kind_errors(nothing, KINDS, ANN, {"spec": {}}, None) == []


@pytest.mark.parametrize(
    ("ref", "policy", "refused"),
    [
        ({"name": "c", "namespace": "x"}, POLICY, False),
        ({"name": "d", "namespace": "x"}, POLICY, True),
        ({"name": "c", "namespace": "x"}, None, True),
        ({"selector": {}, "namespace": "x"}, POLICY, True),
    ],
)
def test_a_binding_needs_to_read_what_it_names(ref: Obj, policy: Obj | None, refused: bool) -> None:
    authorizer = allowing(verbs=["get"], resourceNames=["c"])
    binding: Obj = {"spec": {"policyName": "p", "paramRef": ref}}
    errors = param_ref_errors(authorizer, KINDS, ANN, binding, None, policy)
    assert [error.field for error in errors] == (["spec.paramRef"] if refused else [])
    assert param_ref_errors(authorizer, KINDS, ANN, binding, binding, policy) == []
