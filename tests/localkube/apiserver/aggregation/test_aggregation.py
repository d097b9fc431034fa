"""Group versions that another API server answers."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from kubeclient.objects import Obj
from kubeclient.resources import (
    API_SERVICES,
    ENDPOINT_SLICES,
    NODES,
    PODS,
    SERVICES,
)
from localkube.apiserver.request import Answer, Reply, Request, Stream, User
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN, AUTHENTICATED
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from localkube.kubelet.streams import connected
from localkube.node_streams import Connection, NodeStreams
from tests.conformance.api_server import NoNodes
from tests.localkube.apiserver.admission.webhook_server import key_pair
from tests.localkube.apiserver.aggregation.other_server import RESOURCES, Other, answering

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Nodes(NoNodes):
    """One node, whose pods all listen on the same port of this machine."""

    port = 0

    def streams(self, node: str) -> NodeStreams | None:
        return cast(NodeStreams, self) if node == "n" else None

    async def dial(self, pod_uid: str, port: int) -> Connection:
        return await connected("127.0.0.1", self.port)


@dataclass
class World:
    server: ApiServer
    other: Other
    nodes: Nodes

    async def send(self, path: str, method: str = "GET", user: User = ADMIN, **more: Any) -> Reply:
        path, _, query = path.partition("?")
        request = Request(method, path, query, user=user, **more)
        return await self.server.app.handle(request)

    async def register(self, **spec: Any) -> None:
        whole = {
            "group": "example.com",
            "version": "v1",
            "groupPriorityMinimum": 2000,
            "versionPriority": 10,
            "caBundle": base64.b64encode(key_pair()[0]).decode(),
            "service": {"namespace": "default", "name": "hook"},
            **spec,
        }
        name = f"{whole['version']}.{whole['group']}"
        service = {"metadata": {"name": name}, "spec": whole}
        await self.server.client(ADMIN).create(API_SERVICES, service)

    async def condition(self, wanted: str, name: str = "v1.example.com") -> Obj:
        """Waits until the condition has this reason."""
        kube = self.server.client(ADMIN)
        async with asyncio.timeout(60):
            while True:
                status = (await kube.get(API_SERVICES, name)).get("status") or {}
                for found in status.get("conditions", ()):
                    if found["reason"] == wanted:
                        return dict(found)
                await asyncio.sleep(0.01)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    tmp_path.chmod(0o700)  # noqa: ASYNC240
    made = certificates.ensure(tmp_path)
    nodes = Nodes()
    server = build(tmp_path, made, StaticTokens(), nodes)
    await server.bootstrap(6443)
    async with answering(made, tmp_path) as other:
        nodes.port = other.port
        looking = asyncio.create_task(server.watch_api_services())
        try:
            yield World(server, other, nodes)
        finally:
            # Before the other server ends: it does not close what is in its handshake.
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            await server.end()


async def serve(world: World) -> None:
    """A service `hook.default`, and a pod behind it. Its certificate says hook.ns.svc."""
    kube = world.server.client(ADMIN)
    await kube.create(NODES, {"metadata": {"name": "n"}})
    container = {"name": "c", "image": "x"}
    spec = {"nodeName": "n", "containers": [container], "tolerations": [{"operator": "Exists"}]}
    pod = await kube.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    await kube.create(
        SERVICES,
        {"metadata": {"name": "hook", "namespace": "default"}, "spec": {"ports": [{"port": 443}]}},
    )
    target = {"kind": "Pod", "name": "p", "namespace": "default", "uid": pod["metadata"]["uid"]}
    endpoint = {"addresses": ["10.1.2.3"], "conditions": {"ready": True}, "targetRef": target}
    labels = {"kubernetes.io/service-name": "hook"}
    await kube.create(
        ENDPOINT_SLICES,
        {
            "metadata": {"name": "hook-1", "namespace": "default", "labels": labels},
            "addressType": "IPv4",
            "endpoints": [endpoint],
            "ports": [{"name": "", "port": 443}],
        },
    )


async def available(world: World, **spec: Any) -> None:
    await serve(world)
    await world.register(caBundle="", insecureSkipTLSVerify=True, **spec)
    await world.condition("Passed")


def answered(reply: Reply) -> tuple[int, Any]:
    assert isinstance(reply, Answer)
    body = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
    return reply.status, orjson.loads(body)


async def test_requests_go_to_the_service_and_its_answers_come_back(world: World) -> None:
    await available(world)
    path = "/apis/example.com/v1/namespaces/a/toys?dryRun=All&x=%2F"
    reply = await world.send(path, "POST", body=b"hello")
    code, body = answered(reply)
    assert (code, body) == (418, {"sent": "hello", "where": path})
    assert isinstance(reply, Answer)
    assert ("Warning", '299 - "w"') in reply.headers


async def test_the_other_server_is_told_who_asks_and_gets_no_credentials(world: World) -> None:
    await available(world)
    user = User("jane", ("system:masters", AUTHENTICATED), "u-1", {"example.com/k": ("1", "2")})
    lies = {
        "authorization": "Bearer secret",
        "x-remote-user": "root",
        "x-remote-group": "system:masters",
        "x-remote-extra-scopes": "all",
        "impersonate-user": "jane",
        "accept": "application/json",
    }
    await world.send("/apis/example.com/v1/toys", user=user, headers=lies)
    headers = world.other.asked[-1].headers
    assert headers.getall("X-Remote-User") == ["jane"]
    assert headers.getall("X-Remote-Uid") == ["u-1"]
    assert headers.getall("X-Remote-Group") == ["system:masters", AUTHENTICATED]
    assert headers.getall("X-Remote-Extra-example.com%2Fk") == ["1", "2"]
    assert "Authorization" not in headers
    assert "X-Remote-Extra-Scopes" not in headers
    assert not [name for name in headers if name.lower().startswith("impersonate-")]
    assert headers["Accept"] == "application/json"
    assert headers["Host"] == "hook.default.svc"
    assert (("commonName", "front-proxy-client"),) in world.other.peers[-1]["subject"]


async def test_a_name_that_would_be_two_headers_is_not_passed_on(world: World) -> None:
    """Names of certificates may have any characters."""
    await available(world)
    user = User("jane\r\nX-Remote-Group: system:masters", ("system:masters", AUTHENTICATED))
    reply = await world.send("/apis/example.com/v1/toys", user=user)
    assert isinstance(reply, Answer)
    assert reply.status == 503
    assert not [each for each in world.other.asked if "jane" in each.headers["X-Remote-User"]]


async def test_a_watch_is_passed_on_as_it_comes(world: World) -> None:
    await available(world)
    reply = await world.send("/apis/example.com/v1/toys?watch=true")
    assert isinstance(reply, Stream)
    body = b"".join([chunk async for chunk in reply.chunks])
    assert len(body.splitlines()) == 3


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/namespaces/a/toys", 'cannot list resource "toys" in API group "example.com"'),
        ("GET", "/namespaces/a/toys?watch=1", "cannot watch resource"),
        ("GET", "/namespaces/a/toys/x/status", 'cannot get resource "toys/status"'),
        ("DELETE", "/toys", "cannot deletecollection resource"),
        ("PATCH", "/toys/x", "cannot patch resource"),
    ],
)
async def test_roles_are_asked_before_anything_is_forwarded(
    world: World, method: str, path: str, expected: str
) -> None:
    await available(world)
    jane = User("jane", (AUTHENTICATED,))
    code, body = answered(await world.send(f"/apis/example.com/v1{path}", method, jane))
    assert code == 403
    assert expected in body["message"]
    assert not world.other.asked


@pytest.mark.parametrize("path", ["/..", "/a/../b", "/a/%2e%2e/b", "/a%2Fb"])
async def test_a_path_that_leads_elsewhere_than_it_says_is_refused(world: World, path: str) -> None:
    await available(world)
    code, _ = answered(await world.send(f"/apis/example.com/v1{path}"))
    assert code == 400


async def test_its_resources_are_in_discovery_while_it_answers(world: World) -> None:
    await available(world)
    _, groups = answered(await world.send("/apis"))
    assert "example.com" in [each["name"] for each in groups["groups"]]
    _, group = answered(await world.send("/apis/example.com"))
    assert group["preferredVersion"]["groupVersion"] == "example.com/v1"
    _, listed = answered(await world.send("/apis/example.com/v1"))
    assert listed["resources"] == RESOURCES
    version = await aggregated(world)
    (resource,) = version["resources"]
    assert version["freshness"] == "Current"
    assert (resource["resource"], resource["scope"]) == ("toys", "Namespaced")
    assert resource["subresources"][0]["subresource"] == "status"
    kind = {"group": "example.com", "version": "v1", "kind": "Toy"}
    assert resource["responseKind"] == kind


async def aggregated(world: World) -> Obj:
    _, found = answered(await world.send("/apis", headers={"accept": AGGREGATED}))
    (group,) = [each for each in found["items"] if each["metadata"]["name"] == "example.com"]
    (version,) = group["versions"]
    return dict(version)


async def test_without_an_answer_it_is_unavailable(world: World) -> None:
    await available(world)
    world.nodes.port = 1  # nobody listens there
    kube = world.server.client(ADMIN)
    labels = {"metadata": {"labels": {"look": "again"}}}
    await kube.patch(SERVICES.path("default", "hook"), labels)
    found = await world.condition("FailedDiscoveryCheck")
    assert found["status"] == "False"
    assert "https://hook.default.svc:443/apis/example.com/v1" in found["message"]
    reply = await world.send("/apis/example.com/v1/toys")
    assert isinstance(reply, Answer)
    assert (reply.status, reply.body) == (503, b"service unavailable\n")
    assert (await aggregated(world))["freshness"] == "Stale"


Change = Callable[[World], Awaitable[Any]]


def _only_port(port: int) -> Change:
    async def change(world: World) -> None:
        kube = world.server.client(ADMIN)
        change = {"spec": {"ports": [{"port": port, "targetPort": 1}]}}
        await kube.patch(SERVICES.path("default", "hook"), change)

    return change


async def _without_slices(world: World) -> None:
    await world.server.client(ADMIN).delete(ENDPOINT_SLICES, "hook-1", "default")


async def _without_ready(world: World) -> None:
    endpoint = {"addresses": ["10.1.2.3"], "conditions": {"ready": False}}
    path = ENDPOINT_SLICES.path("default", "hook-1")
    await world.server.client(ADMIN).patch(path, {"endpoints": [endpoint]})


async def _without_service(world: World) -> None:
    await world.server.client(ADMIN).delete(SERVICES, "hook", "default")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_without_service, "ServiceNotFound"),
        (_only_port(444), "ServicePortError"),
        (_without_slices, "EndpointsNotFound"),
        (_without_ready, "MissingEndpoints"),
    ],
)
async def test_the_condition_says_what_is_missing(
    world: World, change: Change, reason: str
) -> None:
    await available(world)
    await change(world)
    assert (await world.condition(reason))["status"] == "False"


async def test_a_certificate_that_names_another_service_is_not_trusted(world: World) -> None:
    await serve(world)
    await world.register()
    found = await world.condition("FailedDiscoveryCheck")
    assert "hook.default.svc" in found["message"]


async def test_nobody_takes_over_what_this_server_answers_itself(world: World) -> None:
    await available(world)
    kube = world.server.client(ADMIN)
    service = {"service": {"namespace": "default", "name": "hook", "port": 443}}
    await kube.patch(API_SERVICES.path(name="v1.apps"), {"spec": service})
    code, body = answered(await world.send("/apis/apps/v1/deployments"))
    assert (code, body["kind"]) == (200, "DeploymentList")
    assert not world.other.asked


async def test_metrics_may_be_somebody_elses(world: World) -> None:
    await available(world)
    kube = world.server.client(ADMIN)
    service = {"namespace": "default", "name": "hook", "port": 443}
    spec = {"service": service, "insecureSkipTLSVerify": True}
    await kube.patch(API_SERVICES.path(name="v1beta1.metrics.k8s.io"), {"spec": spec})
    # The answer is no discovery document, and so it is not available; but it was asked.
    await world.condition("FailedDiscoveryCheck", "v1beta1.metrics.k8s.io")
    assert "/apis/metrics.k8s.io/v1beta1" in world.other.checked


async def test_a_connection_to_it_cannot_be_upgraded(world: World) -> None:
    await available(world)
    headers = {"upgrade": "websocket"}
    code, body = answered(await world.send("/apis/example.com/v1/toys/x/exec", headers=headers))
    assert code == 501
    assert "connect to it directly" in body["message"]
