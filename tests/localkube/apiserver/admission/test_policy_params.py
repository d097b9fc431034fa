"""Parameters of admission policies: ConfigMaps and custom resources that a binding names."""

from collections.abc import Iterator
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.custom import kind_of
from tests.localkube.apiserver.admission.policy_subject import RULE, PolicySubject
from tests.localkube.apiserver.admission.small_cluster import write
from tests.localkube.apiserver.admission.test_policies import thing

_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
_LIMIT = {"apiVersion": "example.com/v1", "kind": "Limit"}
_SAID = [
    {
        "expression": "params.data.most != object.data.size",
        "messageExpression": "string(params.data.most)",
    }
]


@pytest.fixture
def subject() -> Iterator[PolicySubject]:
    found = PolicySubject()
    yield found
    found.judges.close()


def parameters(subject: PolicySubject, name: str, namespace: str = "ns", **data: Any) -> None:
    plain = _CONFIG_MAP | {"data": data, "metadata": {"labels": {"for": "policy"}}}
    subject.cluster.put("configmaps", name, namespace, **plain)


async def test_a_config_map_has_the_parameters(subject: PolicySubject) -> None:
    parameters(subject, "limits", most="3")
    subject.policy(paramKind=_CONFIG_MAP, validations=_SAID)
    subject.bind(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})
    assert await subject.said(write("configmaps", thing(size="3"))) == "3"
    assert await subject.said(write("configmaps", thing(size="4"))) == ""


async def test_parameters_may_be_in_another_namespace(subject: PolicySubject) -> None:
    parameters(subject, "limits", "elsewhere", most="3")
    subject.policy(paramKind=_CONFIG_MAP, validations=_SAID)
    ref = {"name": "limits", "namespace": "elsewhere", "parameterNotFoundAction": "Deny"}
    subject.bind(paramRef=ref)
    assert await subject.said(write("configmaps", thing(size="3"))) == "3"


async def test_selected_parameters_are_all_judged_by(subject: PolicySubject) -> None:
    parameters(subject, "a", most="3")
    parameters(subject, "b", most="4")
    subject.policy(paramKind=_CONFIG_MAP, validations=_SAID)
    selector = {"matchLabels": {"for": "policy"}}
    subject.bind(paramRef={"selector": selector, "parameterNotFoundAction": "Deny"})
    for size, said in (("3", "3"), ("4", "4"), ("5", "")):
        assert await subject.said(write("configmaps", thing(size=size))) == said


@pytest.mark.parametrize(("action", "said"), [("Deny", True), ("Allow", False)])
async def test_parameters_that_are_not_there(
    subject: PolicySubject, action: str, said: bool
) -> None:
    subject.policy(paramKind=_CONFIG_MAP, validations=_SAID)
    subject.bind(paramRef={"name": "limits", "parameterNotFoundAction": action})
    text = (
        "failed to configure binding: no params found for policy binding with `Deny` "
        "parameterNotFoundAction"
    )
    assert await subject.said(write("configmaps", thing(size="3"))) == (text if said else "")


async def test_without_reference_the_parameters_are_null(subject: PolicySubject) -> None:
    subject.policy("params == null", paramKind=_CONFIG_MAP)
    subject.bind()
    assert await subject.said(write("configmaps", thing())) == ""


async def test_a_kind_that_nobody_serves(subject: PolicySubject) -> None:
    subject.policy(paramKind=_LIMIT, validations=_SAID)
    subject.bind(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})
    error = await subject.refusal(write("configmaps", thing()))
    assert str(error) == (
        "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to "
        "configure policy: failed to find resource referenced by paramKind: "
        "'example.com/v1, Kind=Limit'"
    )
    subject.policy(paramKind=_LIMIT, validations=_SAID, failurePolicy="Ignore")
    assert await subject.refusal(write("configmaps", thing())) is None


def _crd(scope: str) -> Obj:
    return {
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": "limits", "kind": "Limit"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        }
    }


async def test_a_custom_resource_has_the_parameters(subject: PolicySubject) -> None:
    crd = _crd("Cluster")
    subject.kinds.add(kind_of(crd, crd["spec"]["versions"][0]))
    subject.cluster.put("limits.example.com", "large", **_LIMIT, data={"most": "9"})
    subject.policy(paramKind=_LIMIT, validations=_SAID)
    subject.bind(paramRef={"name": "large", "parameterNotFoundAction": "Deny"})
    assert await subject.said(write("configmaps", thing(size="9"))) == "9"
    ref = {"name": "large", "namespace": "ns", "parameterNotFoundAction": "Deny"}
    subject.bind(paramRef=ref)
    text = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    assert text in await subject.said(write("configmaps", thing(size="9")))


async def test_a_cluster_wide_object_has_no_namespace_for_parameters(
    subject: PolicySubject,
) -> None:
    rule = RULE | {"resources": ["nodes"]}
    matching = {"resourceRules": [rule]}
    subject.policy(paramKind=_CONFIG_MAP, validations=_SAID, matchConstraints=matching)
    subject.bind(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})
    text = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    assert text in await subject.said(write("nodes", {"metadata": {"name": "n"}}))
