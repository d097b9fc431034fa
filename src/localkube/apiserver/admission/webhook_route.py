"""From a webhook's service to the processes behind it: pods of nodes that answer, and this machine.

    endpoints_of    where a service leads, ready endpoints only
    relayed         a port of the loopback, from which connections go to a pod

The addresses of pods are not reachable from this machine: their nodes connect to them. Addresses
that are neither a pod's nor the loopback's are not called at all.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import ClusterView
from localkube.apiserver.admission.webhook_config import Service
from localkube.forwarding import forward
from localkube.node_streams import Connection, NodeStreams

# The streams of a node's pods; None for a node that is not there.
FindNode: TypeAlias = Callable[[str], NodeStreams | None]
Dial: TypeAlias = Callable[[], Awaitable[Connection]]
_SERVICE_LABEL = "kubernetes.io/service-name"


class NoRoute(Exception):
    """Says why, in Kubernetes' words."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    address: str
    dial: Dial | None = None  # None: the address is of this machine


def endpoints_of(service: Service, cluster: ClusterView, find_node: FindNode) -> list[Endpoint]:
    """At least one. Raises NoRoute."""
    found = cluster.get("services", service.namespace, service.name)
    if found is None:
        raise NoRoute(f'service "{service.name}" not found')
    ports = found["spec"].get("ports") or ()
    port = next((each for each in ports if each.get("port") == service.port), None)
    if port is None:
        raise NoRoute(f'no service port {service.port} found for service "{service.name}"')
    endpoints = [
        endpoint
        for each in cluster.list("endpointslices.discovery.k8s.io", service.namespace)
        if (each["metadata"].get("labels") or {}).get(_SERVICE_LABEL) == service.name
        for endpoint in _endpoints(each, port.get("name", ""), cluster, find_node)
    ]
    if not endpoints:
        raise NoRoute(f'no endpoints available for service "{service.name}"')
    return endpoints


def _endpoints(
    endpoint_slice: Obj, port_name: str, cluster: ClusterView, find_node: FindNode
) -> Iterator[Endpoint]:
    ports = endpoint_slice.get("ports") or ()
    number = next((p.get("port") for p in ports if (p.get("name") or "") == port_name), None)
    for endpoint in endpoint_slice.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready", True) is False or not number:
            continue
        namespace = endpoint_slice["metadata"]["namespace"]
        dial = _dial_pod(endpoint.get("targetRef") or {}, namespace, number, cluster, find_node)
        for address in endpoint.get("addresses") or ():
            if dial is not None or _is_loopback(address):
                yield Endpoint(_with_port(address, number), dial)


def _dial_pod(
    target: Obj, namespace: str, number: int, cluster: ClusterView, find_node: FindNode
) -> Dial | None:
    """Only a pod of the service's own namespace, and as the pod itself says where it is: slices
    are written by users, too."""
    if target.get("kind") != "Pod":
        return None
    pod = cluster.get("pods", namespace, target.get("name") or "")
    node = find_node(pod["spec"].get("nodeName") or "") if pod else None
    if pod is None or node is None:
        return None
    uid = pod["metadata"]["uid"]
    return lambda: node.dial(uid, number)


def _with_port(address: str, number: int) -> str:
    return f"[{address}]:{number}" if ":" in address else f"{address}:{number}"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


@contextlib.asynccontextmanager
async def relayed(dial: Dial) -> AsyncIterator[str]:
    """The address to call. Raises what `dial` raises.

    The first connection is made before anybody asks, so that a refusal is known by its reason. If
    somebody else of this machine comes first, there is one for each.
    """
    waiting = [await dial()]
    clients: list[tuple[asyncio.Task[None], asyncio.StreamWriter]] = []
    is_over = False

    async def connect() -> Connection:
        return waiting.pop() if waiting else await dial()

    # No coroutine: one that begins after the end would be left alone with its connection.
    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if is_over:
            writer.close()
        else:
            clients.append((asyncio.create_task(forward(reader, writer, connect)), writer))

    try:
        # In two steps: a server whose start is cancelled would be lost with its socket.
        listener = socket.create_server(("127.0.0.1", 0))
        server = await asyncio.start_server(accepted, sock=listener, start_serving=False)
        try:
            await server.start_serving()
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            is_over = True
            _close_soon(server, listener)
            for task, writer in clients:
                task.cancel()
                writer.close()  # a task that had not begun does not do it
            await asyncio.gather(*(task for task, _ in clients), return_exceptions=True)
    finally:
        for connection in waiting:
            await connection.close()


def _close_soon(server: asyncio.Server, listener: socket.socket) -> None:
    """When a server is closed, asyncio forgets, open, a connection that it has accepted and not yet
    given to anybody, which takes a turn of the loop. So first nothing more is accepted. Without
    `await`, because whoever ends this may be cancelled meanwhile."""
    loop = asyncio.get_running_loop()
    loop.remove_reader(listener)
    loop.call_soon(loop.call_soon, server.close)
