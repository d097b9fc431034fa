"""GET a page from a port of a pod, through port-forward: API server, kubelet, the pod's loopback.

It reaches what the API server's pod proxy does not: ports on the loopback interface of a pod, and
pods in networks that the API server has no way into. It needs the right to get and create
pods/portforward.

The protocol is that of WebSockets with channels: data of the pod on channel 0, and the kubelet's
words for a failure on channel 1. The first message of each channel is the number of the port.
"""

import contextlib
import re

from kubeclient.client import Kube, WebSocket
from kubeclient.errors import NoAnswer
from kubeclient.objects import Obj
from kubeclient.resources import PODS

PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_MOST_HEAD_BYTES = 64 * 1024


def named_port(pod: Obj, name: str) -> int | None:
    """The number of the port that a container of the pod has under this name."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == name:
                return int(port["containerPort"])
    return None


async def page_of_pod(
    kube: Kube, namespace: str, pod: str, port: int, path: str, *, most_bytes: int
) -> tuple[int, bytes]:
    """Status and body. Raises KubeError. Without a time limit: the caller sets one."""
    url = PODS.path(namespace, pod, "portforward")
    async with kube.websocket(url, query={"ports": str(port)}, protocol=PROTOCOL) as socket:
        # HTTP 1.0: the server closes the connection when it has answered, and sends no chunks.
        request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        # A kubelet that cannot connect has said why by now, and closed: that is to be read.
        with contextlib.suppress(NoAnswer):
            await socket.send(bytes([_DATA]) + request.encode("ascii"))
        return await _response(_Pod(socket, f"port {port} of pod {namespace}/{pod}"), most_bytes)


class _Pod:
    """What comes from the pod."""

    def __init__(self, socket: WebSocket, name: str) -> None:
        self.name = name
        self._socket = socket
        self._begun: set[int] = set()  # channels whose first message was read

    async def read(self) -> bytes:
        """Some bytes; empty at the end. Raises NoAnswer."""
        while (message := await self._socket.receive()) is not None:
            channel, data = (message[0], message[1:]) if message else (_DATA, b"")
            if channel not in self._begun:
                self._begun.add(channel)
                data = data[2:]
            if channel == _ERROR and data:
                words = data.decode("utf-8", "replace").strip()
                raise NoAnswer(f"{self.name}: {words}")
            if channel == _DATA and data:
                return data
        return b""


async def _response(pod: _Pod, most_bytes: int) -> tuple[int, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        part = await pod.read()
        if not part and not received:
            raise NoAnswer(f"{pod.name}: it closed the connection without an answer")
        if not part or len(received) > _MOST_HEAD_BYTES:
            raise NoAnswer(f"{pod.name}: what answers is no HTTP server")
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    status, length = _head(pod.name, head)
    parts, size = [body], len(body)
    while length is None or size < length:
        if max(size, length or 0) > most_bytes:
            raise NoAnswer(f"{pod.name}: the answer has more than {most_bytes} bytes")
        part = await pod.read()
        if not part:
            break
        parts.append(part)
        size += len(part)
    if length is not None and size < length:
        raise NoAnswer(f"{pod.name}: the connection ended within the answer")
    if size > most_bytes:
        raise NoAnswer(f"{pod.name}: the answer has more than {most_bytes} bytes")
    return status, b"".join(parts)[:length]


def _head(name: str, head: bytes) -> tuple[int, int | None]:
    """The status, and how many bytes the body has; None: it ends with the connection."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not re.fullmatch("[0-9]{3}", status):
        raise NoAnswer(f"{name}: what answers is no HTTP server")
    for line in lines:
        key, _, value = line.partition(":")
        if key.lower() == "content-length" and re.fullmatch("[0-9]{1,12}", value.strip()):
            return int(status), int(value)
    return int(status), None
