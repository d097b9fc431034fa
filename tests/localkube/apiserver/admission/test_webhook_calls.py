"""How webhooks are called, over real HTTPS; texts as a real kube-apiserver 1.35.8 gave them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Operation
from localkube.apiserver.admission.webhook_client import MAX_ANSWER_BYTES
from localkube.apiserver.request import User
from tests.localkube.apiserver.admission.small_cluster import (
    SmallCluster,
    pod,
    refused,
    write,
)
from tests.localkube.apiserver.admission.webhook_server import (
    WebhookServer,
    serving,
)
from tests.localkube.apiserver.admission.webhook_subject import (
    LABELLED,
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


async def test_a_host_that_no_resolver_can_be_asked_for_is_not_there(subject: Subject) -> None:
    host = {"url": f"https://{'a' * 70}.example/x"}
    nobody = WebhookServer(port=1)
    configure(subject.cluster, MUTATING, hook(nobody, "x", clientConfig=host))
    with refused(500) as error:
        await subject.mutate(write("configmaps", config_map()))
    assert error.value.status["message"].endswith(": dial tcp: lookup: no such host")
    ignored = hook(nobody, "x", clientConfig=host, failurePolicy="Ignore")
    configure(subject.cluster, MUTATING, ignored)
    await subject.mutate(write("configmaps", config_map()))


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


async def test_webhooks_can_be_called_where_there_is_no_task_yet(subject: Subject) -> None:
    """The HTTP layer takes the first step of a handler outside of any task."""
    started: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def handler() -> None:
        attributes = write("configmaps", config_map())
        await subject.mutate(attributes)
        await subject.validate(attributes)

    def begin() -> None:
        steps = handler().__await__()
        started.set_result((steps, next(steps)))

    async with serving(see=lambda _: {}) as server:
        configure(subject.cluster, MUTATING, hook(server, "see"))
        configure(subject.cluster, VALIDATING, hook(server, "see"))
        asyncio.get_running_loop().call_soon(begin)
        steps, _ = await started
        await _Rest(steps)
        assert len(server.reviews) == 2


class _Rest:
    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __await__(self) -> Any:
        yield from self._steps
