"""GET pods/{name}/log."""

from collections.abc import AsyncIterator

import msgspec

from kubeclient.objects import Obj
from localkube.apiserver.http.bodies import end
from localkube.apiserver.request import Answer, Reply, Request, Stream
from localkube.apiserver.status import bad_request
from localkube.apiserver.subresources.containers import (
    chosen_container,
    container_status,
    refused,
)
from localkube.apiserver.subresources.log_options import log_options
from localkube.node_streams import LogOptions, NodeRefusal, NodeStreams

# Reasons for which the kubelet has words of its own.
_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


async def logs(request: Request, pod: Obj, node: NodeStreams | None) -> Reply:
    """`node` is None as long as the pod has none; then there are no logs. Raises ApiError."""
    name = pod["metadata"]["name"]
    asked = log_options(request, name)
    options = msgspec.structs.replace(asked, container=chosen_container(pod, asked.container))
    if node is None:
        return Answer(204, content_type="text/plain")
    missing = nothing_to_show(pod, options)
    if missing is not None:
        raise bad_request(missing)
    lines = node.logs(pod["metadata"]["uid"], options)
    try:
        # The node says no with the first step; after it the answer has begun.
        first = await anext(lines, b"")
    except NodeRefusal as refusal:
        raise refused(refusal) from None
    except BaseException:
        await end(lines)
        raise
    return Stream(_all(first, lines), content_type="text/plain")


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for line in rest:
            yield line
    finally:
        await end(rest)


def nothing_to_show(pod: Obj, options: LogOptions) -> str | None:
    """Why there are no logs, in the kubelet's words; None when there are some."""
    where = f'container "{options.container}" in pod "{pod["metadata"]["name"]}"'
    status = container_status(pod, options.container)
    if status is None:
        return f"{where} is not available"
    has_ended_before = "terminated" in (status.get("lastState") or {})
    if options.previous:
        return None if has_ended_before else f"previous terminated {where} not found"
    state = status.get("state") or {}
    if "running" in state or "terminated" in state or has_ended_before:
        return None
    if "waiting" not in state:
        return f"{where} is waiting to start - no logs yet"
    reason = (state["waiting"] or {}).get("reason", "")
    return f"{where} is waiting to start: {_WAITING.get(reason, reason)}"
