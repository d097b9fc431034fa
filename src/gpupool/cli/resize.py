"""`gpupool resize`: changes a running pod's share of its card."""

import asyncio
from typing import TYPE_CHECKING

import click

from gpupool.cli.known_names import containers, pods
from gpupool.cli.numbers import Real, Whole
from gpupool.cli.options import access_options, chosen_namespace, namespace_option
from gpupool.cli.programs import ask_cluster
from gpupool.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_PAUSE_S = 0.2


@click.command("resize")
@click.argument("pod", shell_complete=pods)
@click.option(
    "--gpu-mem",
    "units",
    required=True,
    type=Whole(1, 999_999),
    metavar="UNITS",
    help="New share of its container, in units of aliyun.com/gpu-mem.",
)
@click.option(
    "-c",
    "--container",
    default="",
    shell_complete=containers,
    help="Required if several containers have a share.",
)
@namespace_option("pod")
@click.option(
    "--timeout",
    "wait_s",
    default=120.0,
    show_default=True,
    type=Real(0),
    metavar="SECONDS",
    help="How long to wait for the answer.",
)
@access_options
def command(
    pod: str, units: int, container: str, namespace: str, wait_s: float, **where: str
) -> None:
    """Give a running pod more or less of its card, without a restart.

    All or nothing: never more than the card has left, never less than the pod uses.

    \b
    Examples:
      gpupool resize cgpu-test-0 --gpu-mem 6
      gpupool resize trainer-0 -n research -c main --gpu-mem 8 --timeout 30
    """
    namespace = chosen_namespace(namespace, where)
    with progress(f"Resizing {namespace}/{pod}") as shown:
        outcome = ask_cluster(
            lambda kube: resize(kube, (namespace, pod), container, units, wait_s, shown.say),
            doing="",
            **where,
        )
    verdict, _, words = outcome.partition(": ")
    if verdict != "done":
        raise click.ClickException(f"{namespace}/{pod} is not resized: {words or outcome}.")
    click.echo(f"{namespace}/{pod} resized: {words}.")


async def resize(
    kube: "Kube",
    pod: tuple[str, str],
    container: str,
    units: int,
    wait_s: float,
    tell: "Callable[[str], None]" = lambda _: None,
) -> str:
    """Returns the outcome: `done: ...`, `refused: ...` or `unanswered: ...`. Raises KubeError.
    `tell` hears whose answer is missing."""
    from gpupool.cli import namespaced
    from gpupool.contract.names import (
        ANNOTATION_ALLOCATION,
        ANNOTATION_RESIZE,
        ANNOTATION_RESIZE_OUTCOME,
    )
    from gpupool.contract.resize import wish_text
    from kubeclient.resources import PODS

    namespace, name = pod
    found = await namespaced.get(kube, PODS, name, namespace)
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


def _annotations(pod: "Obj") -> dict[str, str]:
    return pod["metadata"].get("annotations") or {}


def _missing(pod: "Obj") -> str:
    from gpupool.contract.names import ANNOTATION_SHRINKING

    if ANNOTATION_SHRINKING not in _annotations(pod):
        return "the scheduler has not answered"
    node = pod["spec"].get("nodeName", "")
    return f"the limit is lowered, but the agent of node {node} has not confirmed it"


def _unanswered(pod: "Obj", wait_s: float) -> str:
    from gpupool.contract.names import ANNOTATION_RESIZE

    return (
        f"after {wait_s:.0f} s, {_missing(pod)}; the wish stands, until you take the annotation "
        f"{ANNOTATION_RESIZE} away"
    )
