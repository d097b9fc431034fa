"""Which writes a webhook is shown; texts as a real kube-apiserver 1.35.8 gave them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.apiserver.kinds import builtin_kinds
from tests.localkube.apiserver.admission.small_cluster import (
    pod,
    refused,
    write,
)
from tests.localkube.apiserver.admission.webhook_server import (
    WebhookServer,
    patching,
    serving,
)
from tests.localkube.apiserver.admission.webhook_subject import (
    MUTATING,
    VALIDATING,
    Subject,
    a_subject,
    config_map,
    configure,
    hook,
)


@pytest.fixture
async def subject() -> AsyncIterator[Subject]:
    async with a_subject() as found:
        yield found


RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["configmaps"],
    "scope": "*",
}


@pytest.mark.parametrize(
    ("changed", "called"),
    [
        ({}, True),
        ({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}, True),
        ({"resources": ["*/*"]}, True),
        ({"resources": ["configmaps/*"]}, True),
        ({"resources": ["configmaps/status"]}, False),
        ({"operations": ["UPDATE"]}, False),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v2"]}, False),
        ({"resources": ["secrets", "pods"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
    ],
)
async def test_rules_choose_the_writes(changed: Obj, called: bool, subject: Subject) -> None:
    assert await _calls(subject, rules=[RULE | changed]) == called


async def _calls(subject: Subject, thing: Obj | None = None, **more: Any) -> bool:
    async with serving(see=lambda _: {}) as server:
        configure(subject.cluster, VALIDATING, hook(server, "see", **more))
        await subject.validate(write("configmaps", thing or config_map()))
        return bool(server.reviews)


@pytest.mark.parametrize(
    ("resources", "subresource", "called"),
    [
        (["pods"], "", True),
        (["pods"], "status", False),
        (["pods/*"], "", True),
        (["pods/*"], "status", True),
        (["pods/status"], "status", True),
        (["*/status"], "status", True),
        (["*"], "status", False),
    ],
)
async def test_rules_choose_subresources(
    resources: list[str], subresource: str, called: bool, subject: Subject
) -> None:
    async with serving(see=lambda _: {}) as server:
        rule = RULE | {"resources": resources}
        configure(subject.cluster, VALIDATING, hook(server, "see", rules=[rule]))
        await subject.validate(write("pods", pod(), subresource=subresource))
        assert bool(server.reviews) == called


async def test_selectors_choose_namespaces_and_objects(subject: Subject) -> None:
    subject.cluster.put("namespaces", "ns", metadata={"labels": {"team": "ml"}})
    labelled = config_map()
    labelled["metadata"]["labels"] = {"a": "1"}
    ml, other = ({"matchLabels": {"team": team}} for team in ("ml", "other"))
    assert await _calls(subject, namespaceSelector=ml)
    assert not await _calls(subject, namespaceSelector=other)
    wanted = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    assert await _calls(subject, labelled, objectSelector=wanted)
    assert not await _calls(subject, objectSelector=wanted)


async def test_another_version_of_the_same_is_meant_too(subject: Subject) -> None:
    v1 = next(k for k in builtin_kinds() if (k.group, k.version) == ("autoscaling", "v1"))
    rule = RULE | {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"],
    }
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "minReplicas": 1,
        "targetCPUUtilizationPercentage": 50,
    }
    thing = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "ns"},
        "spec": spec,
    }
    more = patching({"op": "replace", "path": "/spec/maxReplicas", "value": 4})
    async with serving(see=lambda _: more) as server:
        for policy, calls in (("Exact", 0), ("Equivalent", 1)):
            configured = hook(server, "see", rules=[rule], matchPolicy=policy)
            configure(subject.cluster, MUTATING, configured)
            await subject.mutate(write(v1.resource, thing, kind=v1))
            assert len(server.reviews) == calls
        request = server.reviews[0]["request"]
    assert request["kind"]["version"] == "v2"
    assert request["requestKind"]["version"] == "v1"
    assert request["object"]["apiVersion"] == "autoscaling/v2"
    assert request["object"]["spec"]["metrics"]
    assert thing["apiVersion"] == "autoscaling/v1"
    assert thing["spec"] == spec | {"maxReplicas": 4}


async def test_webhook_configurations_are_shown_to_no_webhook(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        configure(subject.cluster, VALIDATING, hook(server, "see"))
        await subject.validate(write(VALIDATING, {"metadata": {"name": "h"}, "webhooks": []}))
        assert server.reviews == []


def condition(expression: str) -> list[Obj]:
    return [{"name": "c", "expression": expression}]


@pytest.mark.parametrize(
    ("expression", "called"),
    [
        ("object.metadata.name == 'zzz'", False),
        ("has(object.data) && object.data.a == 'b'", True),
        ("request.operation == 'CREATE' && oldObject == null", True),
        ("!('system:nodes' in request.userInfo.groups)", True),
        ("request.userInfo.groups.exists(g, g.startsWith('system:'))", True),
        ("request.resource.resource != 'configmaps'", False),
    ],
)
async def test_conditions_choose_the_writes(
    expression: str, called: bool, subject: Subject
) -> None:
    assert await _calls(subject, matchConditions=condition(expression)) == called


async def test_a_condition_that_cannot_be_judged_fails_closed(subject: Subject) -> None:
    broken = condition("object.nope == 1")
    with refused() as error:
        await _calls(subject, matchConditions=broken)
    assert error.value.status["message"] == (
        "configmaps \"c\" is forbidden: expression 'object.nope == 1' resulted in error: "
        "no such key: nope"
    )
    assert not await _calls(subject, matchConditions=broken, failurePolicy="Ignore")
    false_too = [*broken, *condition("false")]
    assert not await _calls(subject, matchConditions=false_too)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("1", "must evaluate to bool but got int"),
        ("foo(", "compilation failed:"),
        ("authorizer.group('').resource('pods').check('create').allowed()",
         "undeclared reference to 'authorizer' (in container '')"),
        ("ip('10.0.0.1') == ip('10.0.0.2')",
         "undeclared reference to 'ip' (in container ''): Kubernetes has it, this server does not"),
        ("a.all(b, " * 70 + "true" + ")" * 70, "expression recursion limit exceeded"),
        ("'" + "x" * 100_000 + "' == ''", "expression code point size exceeds limit"),
    ],
)  # fmt: skip
async def test_conditions_beyond_us_are_refused_when_they_are_configured(
    expression: str, why: str, subject: Subject
) -> None:
    configured = {
        "metadata": {"name": "h"},
        "webhooks": [hook(WebhookServer(), "x", matchConditions=condition(expression))],
    }
    with refused(422) as error:
        await subject.admission.validate(write(VALIDATING, configured))
    (cause,) = error.value.status["details"]["causes"]
    assert cause["field"] == "webhooks[0].matchConditions[0].expression"
    assert why in cause["message"]
