"""GET (WebSocket) or POST pods/{name}/attach."""

from gpupool.contract.node_streams import AttachOptions, NodeStreams, Process
from gpupool.contract.objects import Obj
from gpupool.localcluster.apiserver.request import Reply, Request
from gpupool.localcluster.apiserver.subresources.remote_command import (
    SUCCESS,
    conversation,
    wanted,
)


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
