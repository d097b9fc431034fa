"""Quotas, limits, priorities and webhooks, as kubectl meets them."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubeclient.objects import Obj
from tests.e2e.kubectl import Ended, Kubectl, eventually, stream_of
from tests.e2e.objects import config_map, container, deployment, pod
from tests.localkube.apiserver.admission.webhook_server import patching, serving

pytestmark = pytest.mark.kubectl


def limited(**resources: Any) -> Obj:
    return container(resources=resources)


def test_a_quota_refuses_what_is_too_much(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "q", "--hard=pods=1,requests.cpu=1")
    eventually(lambda: kubectl.field(".status.hard.pods", "quota", "q") == "1")
    kubectl.apply(pod("a", limited(requests={"cpu": "600m"})))
    eventually(lambda: kubectl.field(".status.used.pods", "quota", "q") == "1")
    second = stream_of(pod("b", limited(requests={"cpu": "600m"})))
    said = kubectl.refused("create", "-f", "-", stdin=second)
    assert (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=600m, '
        "used: pods=1,requests.cpu=600m, limited: pods=1,requests.cpu=1" in said
    )
    row = kubectl("get", "quota", "q").splitlines()[1]
    assert "pods: 1/1, requests.cpu: 600m/1" in row


def test_a_quota_wants_to_be_told(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "q", "--hard=limits.memory=1Gi")
    eventually(lambda: kubectl.field(".status.hard", "quota", "q"))
    said = kubectl.refused("create", "-f", "-", stdin=stream_of(pod("a")))
    assert "failed quota: q: must specify limits.memory for: web" in said


def test_a_quota_is_given_back(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "q", "--hard=pods=1")
    eventually(lambda: kubectl.field(".status.hard.pods", "quota", "q") == "1")
    kubectl.apply(pod("a"))
    kubectl("delete", "pod", "a", "--now")
    eventually(lambda: kubectl.field(".status.used.pods", "quota", "q") == "0")
    kubectl.apply(pod("b"))


def test_a_deployment_over_quota_says_so(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "q", "--hard=pods=1")
    eventually(lambda: kubectl.field(".status.hard.pods", "quota", "q") == "1")
    kubectl.apply(deployment("web", 2))
    kubectl.wait("condition=ReplicaFailure", "deployment/web")
    path = ".status.conditions[?(@.type=='ReplicaFailure')].message"
    assert "exceeded quota: q" in kubectl.field(path, "deployment", "web")
    eventually(lambda: "FailedCreate" in kubectl("events"))


def test_a_limit_range_fills_in_and_refuses(kubectl: Kubectl) -> None:
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l"},
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "default": {"cpu": "500m"},
                    "defaultRequest": {"cpu": "100m"},
                    "max": {"cpu": "2"},
                }
            ]
        },
    }
    kubectl.apply(limits)
    kubectl.apply(pod("a"))
    found = kubectl.json("get", "pod", "a")["spec"]["containers"][0]["resources"]
    assert found == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}
    big = stream_of(pod("b", limited(limits={"cpu": "3"})))
    said = kubectl.refused("create", "-f", "-", stdin=big)
    assert "maximum cpu usage per Container is 2, but limit is 3" in said


def test_a_priority_class_gives_its_value(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    kubectl("create", "priorityclass", name, "--value=1000")
    kubectl.apply(pod("a", priorityClassName=name))
    assert kubectl.field(".spec.priority", "pod", "a") == "1000"
    wrong = stream_of(pod("b", priorityClassName="nothing"))
    said = kubectl.refused("create", "-f", "-", stdin=wrong)
    assert "no PriorityClass with name nothing was found" in said
    kubectl("delete", "priorityclass", name)


def hook(kubectl: Kubectl, kind: str, url: str, bundle: str = "", **more: Any) -> Obj:
    """A webhook for this namespace's ConfigMaps."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": kubectl.namespace},
        "webhooks": [
            {
                "name": "hook.example.com",
                "clientConfig": {"url": url, "caBundle": bundle},
                "rules": [
                    {
                        "operations": ["CREATE", "UPDATE"],
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                    }
                ],
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}
                },
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 5,
                **more,
            }
        ],
    }


@contextlib.asynccontextmanager
async def hooked(kubectl: Kubectl, configuration: Obj) -> AsyncIterator[None]:
    kind = configuration["kind"].lower()
    await run(kubectl, "create", "-f", "-", stdin=stream_of(configuration))
    try:
        yield
    finally:
        await run(kubectl, "delete", kind, kubectl.namespace)


async def run(kubectl: Kubectl, *arguments: str, stdin: str = "") -> Ended:
    """In a thread: the webhook is on this one."""
    return await asyncio.to_thread(kubectl.run, *arguments, stdin=stdin)


async def create(kubectl: Kubectl, obj: Obj) -> Ended:
    return await run(kubectl, "create", "-f", "-", stdin=stream_of(obj))


async def test_a_webhook_changes_objects(kubectl: Kubectl) -> None:
    label = patching({"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}})
    async with serving(hook=lambda request: label) as server:
        made = hook(kubectl, "Mutating", f"{server.url}/hook", server.ca_bundle)
        async with hooked(kubectl, made):
            assert (await create(kubectl, config_map("c"))).code == 0
        found = await run(kubectl, "get", "cm", "c", "-o", "json")
        assert json.loads(found.out)["metadata"]["labels"] == {"seen": "yes"}
        request = server.reviews[0]["request"]
        assert (request["operation"], request["name"]) == ("CREATE", "c")
        assert request["userInfo"]["groups"][0] == "system:masters"


async def test_a_webhook_refuses_and_warns(kubectl: Kubectl) -> None:
    def judge(request: Obj) -> Obj:
        if "bad" in (request["object"].get("data") or {}):
            return {"allowed": False, "status": {"message": "nothing bad here", "code": 403}}
        return {"warnings": ["have an eye on this"]}

    async with serving(hook=judge) as server:
        made = hook(kubectl, "Validating", f"{server.url}/hook", server.ca_bundle)
        async with hooked(kubectl, made):
            refused = await create(kubectl, config_map("c", bad="1"))
            assert refused.code == 1
            assert (
                'admission webhook "hook.example.com" denied the request: nothing bad here'
                in refused.err
            )
            accepted = await create(kubectl, config_map("c", good="1"))
            assert accepted.code == 0
            assert "Warning: have an eye on this" in accepted.err


@pytest.mark.parametrize(("policy", "code"), [("Fail", 1), ("Ignore", 0)])
async def test_a_webhook_that_nobody_answers(kubectl: Kubectl, policy: str, code: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{free.getsockname()[1]}/hook"
        made = hook(kubectl, "Validating", url, failurePolicy=policy)
        del made["webhooks"][0]["clientConfig"]["caBundle"]
        async with hooked(kubectl, made):
            ended = await create(kubectl, config_map("c"))
            assert ended.code == code
            if code:
                assert 'failed calling webhook "hook.example.com"' in ended.err


async def test_conditions_spare_some_objects(kubectl: Kubectl) -> None:
    no: Obj = {"allowed": False}
    only = {"name": "only-marked", "expression": "object.metadata.name.startsWith('marked')"}
    async with serving(hook=lambda request: no) as server:
        made = hook(
            kubectl, "Validating", f"{server.url}/hook", server.ca_bundle, matchConditions=[only]
        )
        async with hooked(kubectl, made):
            assert (await create(kubectl, config_map("free"))).code == 0
            assert (await create(kubectl, config_map("marked-1"))).code == 1
