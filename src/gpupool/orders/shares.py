"""The order to give a running container more or less of its card. The scheduler and the agent of
its node carry it out, and answer in annotations of the pod."""

import asyncio
from collections.abc import Callable

from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_RESIZE,
    ANNOTATION_RESIZE_OUTCOME,
    ANNOTATION_SHRINKING,
)
from gpupool.contract.resize import wish_text
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import PODS

_PAUSE_S = 0.2


async def resize(
    kube: Kube,
    pod: tuple[str, str],
    container: str,
    units: int,
    wait_s: float,
    tell: Callable[[str], None] = lambda _: None,
) -> str:
    """Returns the outcome: `done: ...`, `refused: ...` or `unanswered: ...`. Raises KubeError.
    `tell` hears whose answer is missing."""
    namespace, name = pod
    found = await kube.get(PODS, name, namespace)
    if ANNOTATION_ALLOCATION not in _annotations(found):
        return "refused: it has no cards" + ("" if found["spec"].get("nodeName") else " yet")
    uid = found["metadata"]["uid"]
    # The outcome of an earlier request goes with the same write, so that what is read below is the
    # answer to this one.
    wish = {ANNOTATION_RESIZE: wish_text(container, units), ANNOTATION_RESIZE_OUTCOME: None}
    # With the uid, a new pod of the same name is not resized by mistake.
    patch = {"metadata": {"uid": uid, "annotations": wish}}
    found = await kube.patch(PODS.path(namespace, name), patch)
    end_s = asyncio.get_running_loop().time() + wait_s
    while found["metadata"]["uid"] == uid:
        annotations = _annotations(found)
        if ANNOTATION_RESIZE not in annotations:
            return annotations.get(ANNOTATION_RESIZE_OUTCOME, "refused: the wish was taken back")
        if asyncio.get_running_loop().time() > end_s:
            return f"unanswered: {_unanswered(found, wait_s)}"
        tell(_missing(found))
        await asyncio.sleep(_PAUSE_S)
        found = await kube.get(PODS, name, namespace)
    return "refused: the pod was replaced by another of that name"


def _annotations(pod: Obj) -> dict[str, str]:
    return pod["metadata"].get("annotations") or {}


def _missing(pod: Obj) -> str:
    if ANNOTATION_SHRINKING not in _annotations(pod):
        return "the scheduler has not answered"
    node = pod["spec"].get("nodeName", "")
    return f"the limit is lowered, but the agent of node {node} has not confirmed it"


def _unanswered(pod: Obj, wait_s: float) -> str:
    return (
        f"after {wait_s:.0f} s, {_missing(pod)}; the wish stands, until you take the annotation "
        f"{ANNOTATION_RESIZE} away"
    )
