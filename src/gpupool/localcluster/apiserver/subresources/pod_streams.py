"""Streams of a pod, asked of its node: logs, exec, attach, port-forward."""

from gpupool.contract.node_streams import NodeStreams
from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver import status
from gpupool.localcluster.apiserver.api import Api
from gpupool.localcluster.apiserver.request import Reply, Request
from gpupool.localcluster.apiserver.routing import Target
from gpupool.localcluster.apiserver.subresources import attach, exec, logs, port_forward
from gpupool.localcluster.apiserver.verbs.read import existing


async def pod_logs(api: Api, request: Request, target: Target) -> Reply:
    pod = existing(api, target).obj()
    return await logs.logs(request, pod, _node(api, pod, target))


async def pod_exec(api: Api, request: Request, target: Target) -> Reply:
    pod = _placed(api, target)
    return await exec.exec_(request, pod, _node(api, pod, target))


async def pod_attach(api: Api, request: Request, target: Target) -> Reply:
    pod = _placed(api, target)
    return await attach.attach(request, pod, _node(api, pod, target))


async def pod_port_forward(api: Api, request: Request, target: Target) -> Reply:
    pod = _placed(api, target)
    return await port_forward.port_forward(request, pod, _node(api, pod, target))


def _placed(api: Api, target: Target) -> Obj:
    pod = existing(api, target).obj()
    if not pod["spec"].get("nodeName"):
        raise status.bad_request(f"pod {target.name} does not have a host assigned")
    return pod


def _node(api: Api, pod: Obj, target: Target) -> NodeStreams | None:
    name = pod["spec"].get("nodeName")
    if not name:
        return None
    streams = api.nodes.streams(name)
    if streams is None:
        # The words of a real server whose node object or kubelet is gone.
        raise status.failure(
            404,
            "NotFound",
            f'{target.kind.qualified} "{name}" not found',
            details={"name": name, "kind": target.kind.plural},
        )
    return streams
