"""Webhooks that are pods: their addresses lead nowhere, so their node connects to them."""

from collections.abc import AsyncIterator
from typing import cast

import pytest

from kubeclient.objects import Obj
from localkube.kubelet.streams import connected
from localkube.node_streams import Connection, NodeRefusal, NodeStreams
from tests.localkube.apiserver.admission.small_cluster import refused, write
from tests.localkube.apiserver.admission.webhook_server import WebhookServer, serving
from tests.localkube.apiserver.admission.webhook_subject import (
    MUTATING,
    Subject,
    a_subject,
    config_map,
    configure,
    hook,
)


class Node:
    """Its pods listen on the ports that are given here for them."""

    def __init__(self, **ports: int) -> None:
        self._ports = {f"uid-of-{name}": port for name, port in ports.items()}

    async def dial(self, pod_uid: str, port: int) -> Connection:
        if pod_uid not in self._ports:
            raise NodeRefusal(f"nothing in pod {pod_uid} listens on port {port}")
        return await connected("127.0.0.1", self._ports[pod_uid])


@pytest.fixture
async def subject() -> AsyncIterator[Subject]:
    async with a_subject() as found:
        yield found


def _arrange(subject: Subject, node: Node, *pods: str, refers_to: str = "ns") -> None:
    """A service `hook`, and behind its port 443 the port 8443 of these pods."""
    subject.nodes["n"] = cast(NodeStreams, node)
    cluster = subject.cluster
    cluster.put("services", "hook", "ns", spec={"ports": [{"port": 443, "targetPort": 8443}]})
    for name in pods:
        cluster.put("pods", name, refers_to, spec={"nodeName": "n"})
    cluster.put(
        "endpointslices.discovery.k8s.io",
        "hook-1",
        "ns",
        metadata={"labels": {"kubernetes.io/service-name": "hook"}},
        ports=[{"name": "", "port": 8443}],
        endpoints=[_endpoint(name, refers_to) for name in pods],
    )


def _endpoint(name: str, namespace: str) -> Obj:
    target = {"kind": "Pod", "namespace": namespace, "name": name, "uid": f"uid-of-{name}"}
    return {
        "addresses": ["10.128.0.7"],
        "conditions": {"ready": True},
        "nodeName": "n",
        "targetRef": target,
    }


def _configure(subject: Subject, server: WebhookServer) -> None:
    service = {"namespace": "ns", "name": "hook", "path": "/see"}
    client = {"service": service, "caBundle": server.ca_bundle}
    configure(subject.cluster, MUTATING, hook(server, "see", clientConfig=client))


async def test_a_pod_behind_a_service_is_called(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        _arrange(subject, Node(a=server.port), "a")
        _configure(subject, server)
        for _ in range(3):
            await subject.mutate(write("configmaps", config_map()))
        assert len(server.reviews) == 3
        assert server.requests[0].headers["Host"] == "hook.ns.svc:443"


async def test_the_next_pod_is_called_if_one_does_not_listen(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        _arrange(subject, Node(b=server.port), "a", "b")
        _configure(subject, server)
        await subject.mutate(write("configmaps", config_map()))
        assert len(server.reviews) == 1


async def test_a_pod_that_does_not_listen_is_named(subject: Subject) -> None:
    _arrange(subject, Node(), "a")
    _configure(subject, WebhookServer())
    with refused(500) as error:
        await subject.mutate(write("configmaps", config_map()))
    assert error.value.status["message"].endswith(
        'Post "https://hook.ns.svc:443/see?timeout=10s": dial tcp 10.128.0.7:8443: '
        "nothing in pod uid-of-a listens on port 8443"
    )


async def test_a_pod_of_another_namespace_is_not_called(subject: Subject) -> None:
    async with serving(see=lambda _: {}) as server:
        _arrange(subject, Node(a=server.port), "a", refers_to="other")
        _configure(subject, server)
        with refused(500) as error:
            await subject.mutate(write("configmaps", config_map()))
        assert server.reviews == []
    assert error.value.status["message"].endswith('no endpoints available for service "hook"')
