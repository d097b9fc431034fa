"""Webhooks, called over real HTTPS; texts as a real kube-apiserver 1.35.8 gave them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.admission.attributes import Attributes, Operation
from gpupool.localcluster.apiserver.admission.chain import Admission
from gpupool.localcluster.apiserver.admission.quota import QuotaLedger
from gpupool.localcluster.apiserver.admission.webhook_client import (
    MAX_ANSWER_BYTES,
    WebhookClient,
)
from gpupool.localcluster.apiserver.admission.webhooks import Webhooks
from gpupool.localcluster.apiserver.defaults.apply import apply_defaults
from gpupool.localcluster.apiserver.kinds import Kinds
from gpupool.localcluster.apiserver.kinds_builtin import builtin_kinds
from gpupool.localcluster.apiserver.request import User
from gpupool.localcluster.apiserver.status import ApiError, bad_request
from tests.localcluster.apiserver.admission.small_cluster import (
    KINDS,
    SmallCluster,
    a_cluster,
    container,
    pod,
    refused,
    write,
)
from tests.localcluster.apiserver.admission.webhook_server import (
    WebhookServer,
    patching,
    serving,
)

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
LABELLED = patching({"op": "add", "path": "/metadata/labels", "value": {"m": "1"}})


def hook(server: WebhookServer, path: str, name: str = "a.b.c", **more: Any) -> Obj:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"{server.url}/{path}", "caBundle": server.ca_bundle},
        "rules": [rule],
        "timeoutSeconds": 10,
    } | more


def configure(cluster: SmallCluster, resource: str, *hooks: Obj, name: str = "h") -> None:
    cluster.put(resource, name, webhooks=list(hooks))


def config_map(name: str = "c", **more: Any) -> Obj:
    metadata = {"name": name, "namespace": "ns"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"a": "b"},
    } | more


class Subject:
    """Webhooks of a small cluster."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.client = WebhookClient()
        self.webhooks = Webhooks(cluster, Kinds(builtin_kinds()), complete, self.client)

    async def mutate(self, attributes: Attributes) -> Any:
        return await self.webhooks.mutate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self.webhooks.validate(attributes)


def complete(thing: Obj, kind: Any) -> None:
    if not isinstance(thing.get("data", {}), dict):
        raise bad_request("json: cannot unmarshal number into Go struct field ConfigMap.data")
    apply_defaults(thing, kind)


@pytest.fixture
async def subject() -> AsyncIterator[Subject]:
    found = Subject(a_cluster())
    yield found
    await found.webhooks.close()


async def test_a_webhook_is_asked_as_kubernetes_asks(subject: Subject) -> None:
    alice = User(name="alice", uid="7", groups=("g",), extra={"k": ("v",)})
    options = {"fieldManager": "me", "fieldValidation": "Strict"}
    async with serving(see=lambda _: {}) as server:
        configure(subject.cluster, MUTATING, hook(server, "see"))
        thing = config_map()
        await subject.mutate(write("configmaps", thing, user=alice, options=options))
        (document,), (request,) = server.reviews, server.requests
        assert str(request.rel_url) == "/see?timeout=10s"
        assert request.headers["Content-Type"] == "application/json"
    uid = document["request"].pop("uid")
    assert len(uid) == 36
    named = {"group": "", "version": "v1"}
    assert document == {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "kind": named | {"kind": "ConfigMap"},
            "resource": named | {"resource": "configmaps"},
            "requestKind": named | {"kind": "ConfigMap"},
            "requestResource": named | {"resource": "configmaps"},
            "name": "c",
            "namespace": "ns",
            "operation": "CREATE",
            "userInfo": {"username": "alice", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}},
            "object": thing,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"} | options,
        },
    }


async def test_a_delete_shows_the_old_object_and_a_namespace_is_within_itself(
    subject: Subject,
) -> None:
    old = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    async with serving(see=lambda _: {}) as server:
        configure(subject.cluster, VALIDATING, hook(server, "see"))
        await subject.validate(write("namespaces", None, Operation.DELETE, old=old))
        request = server.reviews[0]["request"]
    assert (request["object"], request["oldObject"]) == (None, old)
    assert (request["name"], request["namespace"]) == ("ns", "ns")
    assert request["options"]["kind"] == "DeleteOptions"


async def test_subresources_are_named(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        configure(subject.cluster, MUTATING, hook(server, "see"))
        await subject.mutate(write("pods", pod(), subresource="eviction"))
        request = server.reviews[0]["request"]
    assert (request["subResource"], request["requestSubResource"]) == ("eviction", "eviction")


async def test_a_patch_changes_the_object_in_place_and_warnings_are_passed_on(
    subject: Subject,
) -> None:
    async with serving(label=lambda _: LABELLED | {"warnings": ["careful"]}) as server:
        configure(subject.cluster, MUTATING, hook(server, "label"))
        thing = config_map()
        attributes = write("configmaps", thing)
        assert (await subject.mutate(attributes)).changed
    assert thing["metadata"]["labels"] == {"m": "1"}
    assert attributes.warnings == ["careful"]


async def test_webhooks_see_what_those_before_them_did(subject: Subject) -> None:
    def count(request: Obj) -> Obj:
        seen = int(request["object"]["data"].get("n", "0"))
        return patching({"op": "add", "path": "/data/n", "value": str(seen + 1)})

    async with serving(count=count) as server:
        configure(subject.cluster, MUTATING, hook(server, "count"), hook(server, "count", "b.b.c"))
        configure(subject.cluster, MUTATING, hook(server, "count"), name="i")
        thing = config_map()
        await subject.mutate(write("configmaps", thing))
    assert thing["data"]["n"] == "3"


DENIALS: list[tuple[Obj, int, str, str]] = [
    (
        {"status": {"code": 418, "message": "no tea", "reason": "Teapot"}},
        418,
        "Teapot",
        'admission webhook "a.b.c" denied the request: no tea',
    ),
    ({}, 400, "", 'admission webhook "a.b.c" denied the request without explanation'),
    (
        {"status": {"reason": "JustBecause", "code": 200}},
        400,
        "JustBecause",
        'admission webhook "a.b.c" denied the request: JustBecause',
    ),
]


@pytest.mark.parametrize(("response", "code", "reason", "message"), DENIALS)
async def test_a_denial_is_passed_on(
    response: Obj, code: int, reason: str, message: str, subject: Subject
) -> None:
    async with serving(deny=lambda _: response | {"allowed": False}) as server:
        for resource in (MUTATING, VALIDATING):
            configure(subject.cluster, resource, hook(server, "deny"))
        for act in (subject.mutate, subject.validate):
            with refused(code) as error:
                await act(write("configmaps", config_map()))
            assert (error.value.reason, error.value.status["message"]) == (reason, message)


async def _slowly(_: Obj) -> Obj:
    await asyncio.sleep(30)
    return {}


FAILURES: list[tuple[Any, str]] = [
    (lambda _: web.Response(status=500, text="boom"),
     'failed to call webhook: an error on the server ("boom") has prevented the request from '
     "succeeding"),
    (lambda _: web.Response(status=404, text="x"),
     "failed to call webhook: the server could not find the requested resource"),
    (lambda _: web.Response(status=403, text="nope"), "failed to call webhook: nope"),
    (lambda _: web.Response(status=307, headers={"Location": "/elsewhere"}),
     "failed to call webhook: the server answered with the status code 307"),
    (lambda _: web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
     "received invalid webhook response: webhook response was absent"),
    (lambda _: web.json_response([1]),
     "received invalid webhook response: webhook response was absent"),
    (lambda _: {"patch": "W10="},
     "received invalid webhook response: webhook returned response.patch but not "
     "response.patchType"),
    (lambda _: {"patchType": "JSONPatch"},
     "received invalid webhook response: webhook returned response.patchType but not "
     "response.patch"),
    (lambda _: {"patchType": "Merge", "patch": "W10="},
     'received invalid webhook response: webhook returned invalid response.patchType of "Merge"'),
    (lambda _: web.Response(body=b" " * (MAX_ANSWER_BYTES + 1)),
     f"failed to call webhook: the answer is larger than {MAX_ANSWER_BYTES} bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("behave", "why"), FAILURES)
async def test_a_useless_answer_fails_the_write_unless_it_is_to_be_ignored(
    behave: Any, why: str, subject: Subject
) -> None:
    async with serving(fail=behave) as server:
        configure(subject.cluster, MUTATING, hook(server, "fail"))
        with refused(500) as error:
            await subject.mutate(write("configmaps", config_map()))
        text = f'failed calling webhook "a.b.c": {why}'
        assert error.value.status["message"] == f"Internal error occurred: {text}"
        assert error.value.status["details"] == {"causes": [{"message": text}]}

        configure(subject.cluster, MUTATING, hook(server, "fail", failurePolicy="Ignore"))
        thing = config_map()
        assert not (await subject.mutate(write("configmaps", thing))).changed
        assert thing == config_map()


async def test_an_answer_to_another_question_is_useless(subject: Subject) -> None:
    async with serving(other=lambda _: {"uid": "x"}) as server:
        configure(subject.cluster, VALIDATING, hook(server, "other"))
        with refused(500) as error:
            await subject.validate(write("configmaps", config_map()))
        uid = server.reviews[0]["request"]["uid"]
    assert f'expected response.uid="{uid}", got "x"' in error.value.status["message"]


async def test_validating_webhooks_may_not_patch(subject: Subject) -> None:
    async with serving(label=lambda _: LABELLED) as server:
        configure(subject.cluster, VALIDATING, hook(server, "label"))
        with refused(500) as error:
            await subject.validate(write("configmaps", config_map()))
    assert "validating webhook may not return response.patch" in error.value.status["message"]


@pytest.mark.parametrize(
    "patch",
    [
        patching({"op": "remove", "path": "/nope/x"}),
        patching({"op": "add", "path": "/data", "value": 5}),
    ],
)
async def test_a_patch_that_makes_no_sense_fails_even_where_failures_are_ignored(
    patch: Obj, subject: Subject
) -> None:
    async with serving(bad=lambda _: patch) as server:
        configure(subject.cluster, MUTATING, hook(server, "bad", failurePolicy="Ignore"))
        thing = config_map()
        with refused(500):
            await subject.mutate(write("configmaps", thing))
    assert thing == config_map()


async def test_what_is_deleted_cannot_be_patched(subject: Subject) -> None:
    async with serving(label=lambda _: LABELLED) as server:
        configure(subject.cluster, MUTATING, hook(server, "label"))
        with refused(500) as error:
            await subject.mutate(write("configmaps", None, Operation.DELETE, old=config_map()))
    assert error.value.status["message"] == (
        'Internal error occurred: admission webhook "a.b.c" attempted to modify the object, '
        "which is not supported for this operation"
    )


async def test_a_webhook_has_only_so_much_time(subject: Subject) -> None:
    async with serving(slow=_slowly) as server:
        configure(subject.cluster, MUTATING, hook(server, "slow", timeoutSeconds=0.1))
        with refused(500) as error:
            await subject.mutate(write("configmaps", config_map()))
        assert error.value.status["message"] == (
            'Internal error occurred: failed calling webhook "a.b.c": failed to call webhook: '
            f'Post "{server.url}/slow?timeout=0.1s": context deadline exceeded'
        )


async def test_nobody_at_the_address(subject: Subject) -> None:
    nobody = WebhookServer(port=1)
    configure(subject.cluster, MUTATING, hook(nobody, "x"))
    with refused(500) as error:
        await subject.mutate(write("configmaps", config_map()))
    assert error.value.status["message"] == (
        'Internal error occurred: failed calling webhook "a.b.c": failed to call webhook: '
        'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: '
        "connection refused"
    )


async def test_a_webhook_must_prove_who_it_is(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        server.ca_bundle = ""
        configure(subject.cluster, MUTATING, hook(server, "see"))
        with refused(500) as error:
            await subject.mutate(write("configmaps", config_map()))
        assert server.reviews == []
    assert "tls: failed to verify certificate: x509:" in error.value.status["message"]


async def test_only_https_is_called(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        plain = {"url": server.url.replace("https", "http")}
        configure(subject.cluster, MUTATING, hook(server, "see", clientConfig=plain))
        with refused(500):
            await subject.mutate(write("configmaps", config_map()))


def _service(cluster: SmallCluster, port: int, address: str = "127.0.0.1") -> None:
    cluster.put("services", "hook", "ns", spec={"ports": [{"name": "w", "port": 443}]})
    cluster.put(
        "endpointslices.discovery.k8s.io",
        "hook-1",
        "ns",
        metadata={"labels": {"kubernetes.io/service-name": "hook"}},
        ports=[{"name": "w", "port": port}],
        endpoints=[
            {"addresses": ["127.0.0.9"], "conditions": {"ready": False}},
            {"addresses": [address], "conditions": {"ready": True}},
        ],
    )


async def test_a_service_is_called_through_its_endpoints(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        _service(subject.cluster, server.port)
        service = {"namespace": "ns", "name": "hook", "path": "/see"}
        client = {"service": service, "caBundle": server.ca_bundle}
        configure(subject.cluster, MUTATING, hook(server, "see", clientConfig=client))
        await subject.mutate(write("configmaps", config_map()))
        assert server.requests[0].headers["Host"] == "hook.ns.svc:443"


@pytest.mark.parametrize(
    ("service", "why"),
    [
        ({"name": "gone", "path": "/p"}, 'https://gone.ns.svc:443/p?timeout=10s": '
                                         'service "gone" not found'),
        ({"name": "hook", "port": 8443}, 'https://hook.ns.svc:8443/?timeout=10s": '
                                         'no service port 8443 found for service "hook"'),
        ({"name": "hook"}, 'https://hook.ns.svc:443/?timeout=10s": '
                           'no endpoints available for service "hook"'),
    ],
)  # fmt: skip
async def test_services_that_cannot_be_called(service: Obj, why: str, subject: Subject) -> None:
    _service(subject.cluster, 1, address="10.1.2.3")  # not of this machine
    client = {"service": {"namespace": "ns"} | service}
    configure(subject.cluster, MUTATING, hook(WebhookServer(), "x", clientConfig=client))
    with refused(500) as error:
        await subject.mutate(write("configmaps", config_map()))
    assert error.value.status["message"].endswith(f'failed to call webhook: Post "{why}')


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


async def test_a_dry_run_calls_only_what_has_no_side_effects(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        configure(subject.cluster, MUTATING, hook(server, "see", sideEffects="NoneOnDryRun"))
        await subject.mutate(write("configmaps", config_map(), dry_run=True))
        assert server.reviews[0]["request"]["dryRun"] is True
        configure(subject.cluster, MUTATING, hook(server, "see", sideEffects="Some"))
        with refused(400) as error:
            await subject.mutate(write("configmaps", config_map(), dry_run=True))
    assert error.value.status["message"] == ('admission webhook "a.b.c" does not support dry run')


async def test_unknown_review_versions_fail(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        configured = hook(server, "see", admissionReviewVersions=["v9"])
        configure(subject.cluster, MUTATING, configured)
        with refused(500) as error:
            await subject.mutate(write("configmaps", config_map()))
        assert "does not accept known AdmissionReview versions" in error.value.status["message"]
        configured = hook(server, "see", admissionReviewVersions=["v9", "v1beta1"])
        configure(subject.cluster, MUTATING, configured)
        await subject.mutate(write("configmaps", config_map()))
        assert server.reviews[0]["apiVersion"] == "admission.k8s.io/v1beta1"


async def test_validating_webhooks_are_called_together_and_all_of_them(subject: Subject) -> None:
    both = asyncio.Barrier(2)

    async def meet(_: Obj) -> Obj:
        await both.wait()
        return {"allowed": False, "status": {"message": "met"}}

    async with serving(meet=meet) as server:
        configure(subject.cluster, VALIDATING, hook(server, "meet"), hook(server, "meet", "d.e.f"))
        with refused(400) as error:
            await subject.validate(write("configmaps", config_map()))
    assert error.value.status["message"] == 'admission webhook "a.b.c" denied the request: met'


def _admission(subject: Subject) -> Admission:
    ledger = QuotaLedger(subject.cluster, lambda: 0.0)
    return Admission(subject.cluster, ledger, subject.webhooks)


SIDECAR = patching({"op": "add", "path": "/spec/containers/-", "value": container("sidecar")})


async def test_what_a_webhook_adds_goes_through_the_plugins_too(subject: Subject) -> None:
    limits = [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]
    subject.cluster.put("limitranges", "l", "ns", spec={"limits": limits})
    async with serving(inject=lambda _: SIDECAR) as server:
        configure(subject.cluster, MUTATING, hook(server, "inject"))
        thing = await _admission(subject).mutate(write("pods", pod()))
        assert len(server.reviews) == 1
    own, sidecar = thing["spec"]["containers"]
    assert sidecar["resources"] == own["resources"]
    assert sidecar["volumeMounts"] == own["volumeMounts"]
    assert sidecar["terminationMessagePath"] == "/dev/termination-log"


@pytest.mark.parametrize(
    ("policy", "calls"),
    [("Never", ["first", "second"]), ("IfNeeded", ["first", "second", "first"])],
)
async def test_webhooks_that_ask_for_it_see_later_changes(
    policy: str, calls: list[str], subject: Subject
) -> None:
    seen: list[str] = []

    def first(_: Obj) -> Obj:
        seen.append("first")
        return {}

    def second(_: Obj) -> Obj:
        seen.append("second")
        return LABELLED

    async with serving(first=first, second=second) as server:
        configure(
            subject.cluster,
            MUTATING,
            hook(server, "first", "a.a.a", reinvocationPolicy=policy),
            hook(server, "second", "b.b.b", reinvocationPolicy=policy),
        )
        await _admission(subject).mutate(write("configmaps", config_map()))
    assert seen == calls


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
         "compilation failed: not supported here: authorizer, allowed, check, group, resource"),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi'))",
         "compilation failed: not supported here: isGreaterThan, quantity"),
        ("a.all(b, " * 5 + "true" + ")" * 5, "compilation failed: more than 4 loops"),
        ("'" + "x" * 5200 + "' == ''", "must be no more than 5120 bytes"),
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
        await _admission(subject).validate(write(VALIDATING, configured))
    (cause,) = error.value.status["details"]["causes"]
    assert cause["field"] == "webhooks[0].matchConditions[0].expression"
    assert why in cause["message"]


async def test_without_webhooks_nothing_is_called_and_little_is_done(subject: Subject) -> None:
    thing = pod()
    attributes = write("pods", thing)
    admission = _admission(subject)
    assert await admission.mutate(attributes) is thing
    await admission.validate(attributes)
    admission.charge(attributes)
    with pytest.raises(ApiError):
        await admission.mutate(write("pods", pod(), namespace="gone"))
    assert KINDS["pods"] is attributes.kind
