"""GET (WebSocket) or POST pods/{name}/attach."""

from kubeclient.objects import Obj
from localkube.apiserver.request import Reply, Request
from localkube.apiserver.subresources.remote_command import (
    SUCCESS,
    conversation,
    wanted,
)
from localkube.node_streams import AttachOptions, NodeStreams, Process


async def attach(request: Request, pod: Obj, node: NodeStreams | None) -> Reply:
    """`node` is None as long as the pod has none. Raises ApiError."""
    wish, streams = wanted(request, pod, node)
    options = AttachOptions(
        container=wish.container,
        stdin=wish.stdin,
        stdout=wish.stdout,
        stderr=wish.stderr,
        tty=wish.tty,
    )

    async def start() -> Process:
        return await streams.attach(pod["metadata"]["uid"], options)

    # The end of the container is no failure of having been attached to it.
    return conversation(wish, start, lambda _code: SUCCESS)
