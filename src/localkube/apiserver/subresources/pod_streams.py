"""Streams of a pod, asked of its node: logs, exec, attach, port-forward."""

from collections.abc import Awaitable, Callable

from kubeclient.objects import Obj
from localkube.apiserver.api import Api
from localkube.apiserver.request import Reply, Request
from localkube.apiserver.routing import Target
from localkube.apiserver.status import not_found
from localkube.apiserver.subresources import exec, logs, port_forward
from localkube.apiserver.subresources.containers import chosen_container
from localkube.apiserver.subresources.log_options import log_options
from localkube.apiserver.verbs.read import existing
from localkube.node_streams import NodeStreams

# What each of them is: a pod and its node's door (None: not placed, or not to be reached).
PodStream = Callable[[Request, Obj, NodeStreams | None], Awaitable[Reply]]


async def pod_logs(api: Api, request: Request, target: Target) -> Reply:
    return await _ask(api, request, target, logs.logs)


async def pod_exec(api: Api, request: Request, target: Target) -> Reply:
    return await _ask(api, request, target, exec.exec_)


async def pod_attach(api: Api, request: Request, target: Target) -> Reply:
    return await _ask(api, request, target, exec.attach)


async def pod_port_forward(api: Api, request: Request, target: Target) -> Reply:
    return await _ask(api, request, target, port_forward.port_forward)


async def _ask(api: Api, request: Request, target: Target, stream: PodStream) -> Reply:
    pod = existing(api, target).obj()
    name = pod["spec"].get("nodeName")
    if name and api.store.get("nodes", "", name) is None:
        _check(request, pod, target.subresource)
        raise not_found(target.kind, name)  # a node, and yet: Kubernetes calls it a pod
    return await stream(request, pod, api.nodes.streams(name) if name else None)


def _check(request: Request, pod: Obj, subresource: str) -> None:
    """Checks the request before the node, so that a wrong request is refused as such."""
    if subresource == "log":
        chosen_container(pod, log_options(request, pod["metadata"]["name"]).container)
    elif subresource != "portforward":
        chosen_container(pod, request.text("container"))
