"""Just enough of an API server to ask for streams of one pod; kubectl takes it for a whole one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from kubeclient.objects import Obj
from localkube.apiserver.http.limits import WireLimits
from localkube.apiserver.http.server import Server
from localkube.apiserver.request import Answer, Handler, Reply, Request
from localkube.apiserver.status import ApiError, no_such_resource
from localkube.apiserver.subresources.exec import attach, exec_
from localkube.apiserver.subresources.logs import logs
from localkube.apiserver.subresources.port_forward import port_forward
from localkube.node_streams import NodeStreams
from tests.localkube.apiserver.http.wire_client import USUAL, serving
from tests.localkube.apiserver.streams.process_node import ProcessNode

POD_PATH = "/api/v1/namespaces/default/pods/p"

_STREAMS = {"log": logs, "exec": exec_, "attach": attach, "portforward": port_forward}

_VERBS = ["create", "get", "list", "watch"]
_DISCOVERY: dict[str, Obj] = {
    "/version/": {"major": "1", "minor": "35", "gitVersion": "v1.35.8"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "singularName": "pod",
                "namespaced": True,
                "kind": "Pod",
                "verbs": _VERBS,
            }
        ],
    },
}


def pod(*containers: str) -> Obj:
    names = containers or ("c",)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u-1"},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": name, "image": "x"} for name in names],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": type_, "status": "True"} for type_ in ("Ready", "ContainersReady")
            ],
            "containerStatuses": [{"name": name, "state": {"running": {}}} for name in names],
        },
    }


def app(node: NodeStreams | None, described: Obj) -> Handler:
    async def handle(request: Request) -> Reply:
        try:
            if request.path == POD_PATH:
                return Answer(200, orjson.dumps(described))
            if request.path.startswith(POD_PATH + "/"):
                return await _STREAMS[request.path.rpartition("/")[2]](request, described, node)
            if request.path in _DISCOVERY:
                return Answer(200, orjson.dumps(_DISCOVERY[request.path]))
            raise no_such_resource()
        except ApiError as error:
            return error.answer()

    return handle


@asynccontextmanager
async def streaming(
    node: NodeStreams | None, described: Obj | None = None, limits: WireLimits = USUAL
) -> AsyncIterator[Server]:
    try:
        async with serving(app(node, described or pod()), limits) as server:
            yield server
    finally:
        if isinstance(node, ProcessNode):
            await node.end()
