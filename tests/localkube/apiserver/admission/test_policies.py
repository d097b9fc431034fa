"""What admission policies refuse and warn about; texts as kube-apiserver 1.35.8 gives them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.request import User
from tests.localkube.apiserver.admission.policy_subject import RULE, PolicySubject
from tests.localkube.apiserver.admission.small_cluster import write


@pytest.fixture
def subject() -> Iterator[PolicySubject]:
    found = PolicySubject()
    yield found
    found.judges.close()


def thing(name: str = "c", labels: dict[str, str] | None = None, **data: str) -> Obj:
    metadata: Obj = {"name": name, "namespace": "ns"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_a_write_is_denied_by_policy_and_binding(subject: PolicySubject) -> None:
    subject.policy("object.data.size == 'small'")
    subject.bind()
    assert await subject.refusal(write("configmaps", thing(size="small"))) is None
    error = await subject.refusal(write("configmaps", thing(size="big")))
    assert error is not None
    text = (
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
        "failed expression: object.data.size == 'small'"
    )
    assert error.status["message"] == f'configmaps "c" is forbidden: {text}'
    assert (error.status["reason"], error.status["code"]) == ("Invalid", 422)
    details = {"name": "c", "kind": "configmaps", "causes": [{"message": text}]}
    assert error.status["details"] == details


async def test_a_generated_name_is_told(subject: PolicySubject) -> None:
    subject.policy()
    subject.bind()
    made = thing("gen-abcde")
    made["metadata"]["generateName"] = "gen-"
    error = await subject.refusal(write("configmaps", made))
    assert str(error).startswith('configmaps "gen-abcde" is forbidden: ')


async def test_a_policy_without_binding_does_nothing(subject: PolicySubject) -> None:
    subject.policy()
    subject.bind(policy="another")
    assert await subject.refusal(write("configmaps", thing())) is None


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)]
)
async def test_a_validation_gives_its_reason(
    subject: PolicySubject, reason: str, code: int
) -> None:
    subject.policy(validations=[{"expression": "false", "reason": reason, "message": "no"}])
    subject.bind()
    error = await subject.refusal(write("configmaps", thing()))
    assert error is not None
    assert (error.reason, error.code) == (reason, code)


@pytest.mark.parametrize(
    ("validation", "said"),
    [
        ({"message": " no more "}, "no more"),
        ({"message": "no", "messageExpression": "'not ' + object.metadata.name"}, "not c"),
        ({"message": "no", "messageExpression": "string(object.nothing)"}, "no"),
        ({"message": "no", "messageExpression": "'a\\nb'"}, "no"),
        ({"message": "no", "messageExpression": "' '"}, "no"),
        ({}, "failed expression: 1 == 2"),
    ],
)
async def test_a_message_comes_from_the_best_that_there_is(
    subject: PolicySubject, validation: Obj, said: str
) -> None:
    subject.policy(validations=[{"expression": " 1 == 2 "} | validation])
    subject.bind()
    assert await subject.said(write("configmaps", thing())) == said


async def test_the_first_denial_is_told(subject: PolicySubject) -> None:
    rows = [
        {"expression": "true", "message": "one"},
        {"expression": "false", "message": "two"},
        {"expression": "false", "message": "three"},
    ]
    subject.policy(validations=rows)
    subject.bind()
    assert await subject.said(write("configmaps", thing())) == "two"


async def test_a_binding_may_only_warn(subject: PolicySubject) -> None:
    subject.policy(validations=[{"expression": "false", "message": "better not"}])
    subject.bind(validationActions=["Warn", "Audit"])
    attributes = write("configmaps", thing())
    assert await subject.refusal(attributes) is None
    assert attributes.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': better not"
    ]


async def test_a_binding_may_only_be_for_the_record(subject: PolicySubject) -> None:
    subject.policy()
    subject.bind(validationActions=["Audit"])
    attributes = write("configmaps", thing())
    assert await subject.refusal(attributes) is None
    assert attributes.warnings == []


@pytest.mark.parametrize(("policy", "said"), [("Fail", True), ("Ignore", False)])
async def test_an_expression_that_fails_meets_the_failure_policy(
    subject: PolicySubject, policy: str, said: bool
) -> None:
    subject.policy("object.spec.x == 1", failurePolicy=policy)
    subject.bind()
    text = "expression 'object.spec.x == 1' resulted in error: no such key: spec"
    assert await subject.said(write("configmaps", thing())) == (text if said else "")


@pytest.mark.parametrize(
    ("constraints", "meant"),
    [
        ({}, True),
        ({"resourceRules": [RULE | {"operations": ["DELETE"]}]}, False),
        ({"resourceRules": [RULE | {"resources": ["secrets"]}]}, False),
        ({"resourceRules": [RULE | {"resourceNames": ["c"]}]}, True),
        ({"resourceRules": [RULE | {"resourceNames": ["d"]}]}, False),
        ({"excludeResourceRules": [RULE]}, False),
        ({"excludeResourceRules": [RULE | {"resourceNames": ["d"]}]}, True),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, True),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"is": "special"}}}, False),
        ({"namespaceSelector": {"matchExpressions": [{"key": "is", "operator": "DoesNotExist"}]}},
         True),
    ],
)  # fmt: skip
async def test_a_policy_and_a_binding_match_alike(
    subject: PolicySubject, constraints: Obj, meant: bool
) -> None:
    attributes = write("configmaps", thing(labels={"a": "b"}))
    subject.policy(matchConstraints={"resourceRules": [RULE]} | constraints)
    subject.bind()
    assert (await subject.refusal(attributes) is not None) is meant
    subject.policy()
    subject.bind(matchResources=constraints)
    assert (await subject.refusal(attributes) is not None) is meant


async def test_a_rule_means_other_versions_too(subject: PolicySubject) -> None:
    rule = RULE | {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"],
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "ns"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": target,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 70},
                    },
                }
            ],
        },
    }
    seen = (
        "object.apiVersion + ' ' + string(object.spec.targetCPUUtilizationPercentage) + ' ' + "
        "request.kind.version + ' ' + request.requestKind.version"
    )
    validations = [{"expression": "false", "messageExpression": seen}]
    attributes = write("horizontalpodautoscalers.autoscaling", scaler)
    assert attributes.kind.version == "v2"
    subject.policy(matchConstraints={"resourceRules": [rule]}, validations=validations)
    subject.bind()
    assert await subject.said(attributes) == "autoscaling/v1 70 v1 v2"
    exact = {"resourceRules": [rule], "matchPolicy": "Exact"}
    subject.policy(matchConstraints=exact, validations=validations)
    assert await subject.said(attributes) == ""


async def test_conditions_spare_writes(subject: PolicySubject) -> None:
    subject.policy(
        matchConditions=[
            {"name": "others", "expression": "request.userInfo.username != 'ann'"},
            {"name": "named", "expression": "object.metadata.name.startsWith('c')"},
        ]
    )
    subject.bind()
    ann = User(name="ann")
    assert await subject.said(write("configmaps", thing(), user=ann)) == ""
    assert await subject.said(write("configmaps", thing("d"))) == ""
    assert await subject.said(write("configmaps", thing())) == "failed expression: false"


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_condition_that_fails_counts_only_if_none_is_false(
    subject: PolicySubject, policy: str
) -> None:
    broken = {"name": "a", "expression": "object.nothing == 1"}
    false = {"name": "b", "expression": "object.metadata.name == 'other'"}
    subject.policy(matchConditions=[broken], failurePolicy=policy)
    subject.bind()
    text = "expression 'object.nothing == 1' resulted in error: no such key: nothing"
    said = await subject.said(write("configmaps", thing()))
    assert said == (text if policy == "Fail" else "")
    subject.policy(matchConditions=[broken, false], failurePolicy=policy)
    assert await subject.said(write("configmaps", thing())) == ""


async def test_a_variable_that_fails_is_evaluated_once(subject: PolicySubject) -> None:
    """Otherwise this would take a thousand times as long, and run out of its budget."""
    subject.policy(
        "lists.range(1000).exists(i, variables.costly == i)",
        variables=[
            {"name": "costly", "expression": "lists.range(10000).map(x, x + 1).size() / 0"},
        ],
    )
    subject.bind()
    assert "division by zero" in str(await subject.refusal(write("configmaps", thing())))


async def test_variables_are_evaluated_when_they_are_needed(subject: PolicySubject) -> None:
    subject.policy(
        "!has(object.data.a) || variables.sum > 10",
        variables=[
            {"name": "a", "expression": "int(object.data.a)"},
            {"name": "sum", "expression": "variables.a + variables.a"},
        ],
    )
    subject.bind()
    assert await subject.said(write("configmaps", thing())) == ""
    assert await subject.said(write("configmaps", thing(a="6"))) == ""
    assert (await subject.said(write("configmaps", thing(a="5")))).startswith("failed expression")
    text = 'composited variable "sum" fails to evaluate: composited variable "a" fails to evaluate'
    assert text in await subject.said(write("configmaps", thing(a="x")))


async def test_old_and_new_are_compared(subject: PolicySubject) -> None:
    subject.policy("oldObject == null || object.data == oldObject.data")
    subject.bind()
    assert await subject.said(write("configmaps", thing(a="1"))) == ""
    changed = write("configmaps", thing(a="1"), Operation.UPDATE, old=thing(a="2"))
    assert await subject.said(changed) != ""


async def test_a_deletion_is_seen(subject: PolicySubject) -> None:
    rule = RULE | {"operations": ["DELETE"]}
    subject.policy(
        "object != null || !oldObject.metadata.labels.keep.startsWith('y')",
        matchConstraints={"resourceRules": [rule]},
    )
    subject.bind()
    gone = write("configmaps", None, Operation.DELETE, old=thing(labels={"keep": "yes"}))
    assert await subject.said(gone) != ""
    gone = write("configmaps", None, Operation.DELETE, old=thing(labels={"keep": "no"}))
    assert await subject.said(gone) == ""


async def test_the_claims_of_a_token_are_seen(subject: PolicySubject) -> None:
    key = "authentication.kubernetes.io/node-name"
    subject.policy(f"request.userInfo.extra['{key}'] == [object.data.node]")
    subject.bind()
    user = User("system:serviceaccount:ns:agent", extra={key: ("n1",)})
    assert await subject.said(write("configmaps", thing(node="n1"), user=user)) == ""
    assert await subject.said(write("configmaps", thing(node="n2"), user=user)) != ""
    assert "no such key" in await subject.said(write("configmaps", thing(node="n1")))


async def test_the_namespace_is_seen(subject: PolicySubject) -> None:
    subject.policy("namespaceObject.metadata.name == request.namespace")
    subject.bind()
    assert await subject.said(write("configmaps", thing())) == ""


async def test_the_authorizer_is_asked(subject: PolicySubject) -> None:
    chain = "authorizer.group('apps').resource('deployments').namespace('x').check('get').allowed()"
    subject.policy(f"{chain} && !authorizer.requestResource.check('delete').allowed()")
    subject.bind()
    assert await subject.said(write("configmaps", thing())) == ""
    assert subject.asked == [
        {"group": "apps", "resource": "deployments", "namespace": "x", "verb": "get"},
        {
            "group": "",
            "resource": "configmaps",
            "subresource": "",
            "namespace": "ns",
            "name": "c",
            "verb": "delete",
        },
    ]


async def test_policies_are_not_asked_about_themselves(subject: PolicySubject) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    subject.policy(matchConstraints={"resourceRules": [rule]})
    subject.bind()
    assert await subject.refusal(write("configmaps", thing())) is not None
    for resource in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
        own: Obj = {"metadata": {"name": "p"}}
        attributes = write(f"{resource}.admissionregistration.k8s.io", own)
        assert await subject.refusal(attributes) is None


def _long(count: int) -> dict[str, Any]:
    return {f"k{number}": "x" for number in range(count)}


async def test_nobody_waits_for_a_long_judgement(subject: PolicySubject) -> None:
    """It goes on in a thread while others are judged on the event loop."""
    subject.policy("object.data.all(a, object.data.all(b, a + b != 'zzz'))")
    subject.bind()
    long = asyncio.create_task(subject.said(write("configmaps", thing(**_long(100)))))
    await asyncio.sleep(0)  # it begins, and finds that it is long
    assert not long.done()
    assert await subject.said(write("configmaps", thing(**_long(1)))) == ""
    assert not long.done()
    assert await long == ""


async def test_an_expression_has_a_limit(subject: PolicySubject) -> None:
    expression = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'zzz')))"
    subject.policy(expression)
    subject.bind()
    text = "resulted in error: operation cancelled: actual cost limit exceeded"
    assert text in await subject.said(write("configmaps", thing(**_long(100))))
