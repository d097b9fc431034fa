"""GET (WebSocket) or POST pods/{name}/exec and pods/{name}/attach."""

from kubeclient.objects import Obj
from localkube.apiserver.request import Reply, Request
from localkube.apiserver.status import bad_request
from localkube.apiserver.subresources.remote_command import (
    SUCCESS,
    conversation,
    wanted,
)
from localkube.node_streams import AttachOptions, ExecOptions, NodeStreams, Process


async def exec_(request: Request, pod: Obj, node: NodeStreams | None) -> Reply:
    """`node` is None as long as the pod has none. Raises ApiError."""
    wish, streams = wanted(request, pod, node)
    command = tuple(request.query.get("command", ()))
    if not command:
        raise bad_request("you must specify at least one command for the container")
    options = ExecOptions(
        container=wish.container,
        command=command,
        stdin=wish.stdin,
        stdout=wish.stdout,
        stderr=wish.stderr,
        tty=wish.tty,
    )

    async def start() -> Process:
        return await streams.exec(pod["metadata"]["uid"], options)

    return conversation(wish, start, exit_status)


def exit_status(code: int) -> Obj:
    """The Status from which kubectl takes its own exit code."""
    if code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": (
            f"command terminated with non-zero exit code: command terminated with exit code {code}"
        ),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


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
