"""GET (WebSocket) or POST pods/{name}/portforward, in the two ways that clients know.

- kubectl: SPDY inside the WebSocket. Each connection is a pair of streams, one for data and one on
  which we say what went wrong; both carry a port and the id that makes them a pair.
- Python clients: channels 2i and 2i+1 for the i-th port of the query; both begin with the port.
"""

import re
from functools import partial

from kubeclient.objects import Obj
from localkube.apiserver.http import handshake
from localkube.apiserver.request import Reply, Request, Upgrade, WebSocket
from localkube.apiserver.status import bad_request
from localkube.apiserver.subresources.forwarding import Target
from localkube.apiserver.subresources.port_forward_channels import (
    PROTOCOLS,
    forward_channels,
)
from localkube.apiserver.subresources.port_forward_spdy import TUNNEL, forward_streams
from localkube.node_streams import NodeStreams

_PORT = re.compile(r"[0-9]+\Z")


async def port_forward(request: Request, pod: Obj, node: NodeStreams | None) -> Reply:
    """`node` is None as long as the pod has none. Raises ApiError."""
    name = pod["metadata"]["name"]
    ports = _ports(request)
    if node is None:
        raise bad_request(f"pod {name} does not have a host assigned")
    if not handshake.asks_for_websocket(request):
        raise bad_request("Upgrade request required")
    supported = (TUNNEL, *PROTOCOLS)
    if not ports and handshake.subprotocol(request.headers, supported) in PROTOCOLS:
        raise bad_request('query parameter "port" is required')
    target = Target(name, pod["metadata"]["uid"], node)
    return Upgrade(supported, partial(_run, target, ports))


async def _run(target: Target, ports: list[int], socket: WebSocket) -> None:
    if socket.subprotocol == TUNNEL:
        await forward_streams(target, socket)
    else:
        await forward_channels(target, ports, socket)


def _ports(request: Request) -> list[int]:
    texts = [text for value in request.query.get("ports", ()) for text in value.split(",")]
    return [_port(text) for text in texts]


def _port(text: str) -> int:
    problem = ""
    if not _PORT.match(text):
        problem = "invalid syntax"
    elif len(text.lstrip("0")) > 5 or int(text.lstrip("0") or "0") >= 2**16:
        problem = "value out of range"
    if problem:
        raise bad_request(
            f'cannot convert to []int32: strconv.ParseUint: parsing "{text}": {problem}'
        )
    number = int(text.lstrip("0") or "0")
    if number == 0:
        raise bad_request(f'port "{text}" must be > 0')
    return number
