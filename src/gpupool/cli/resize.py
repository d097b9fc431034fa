"""`gpupool resize`: changes a running pod's share of its card."""

from typing import TYPE_CHECKING

import click

from gpupool.cli.known_names import containers, pods
from gpupool.cli.numbers import Real, Whole
from gpupool.cli.options import (
    POD_WORDS,
    access_options,
    chosen_namespace,
    name_and_namespace,
    namespace_option,
)
from gpupool.cli.programs import ask_cluster
from gpupool.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeclient.client import Kube


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
    pod, namespace = name_and_namespace(POD_WORDS, pod, namespace)
    namespace = chosen_namespace(namespace, where)
    with progress(f"Resizing {namespace}/{pod}") as shown:
        outcome = ask_cluster(
            lambda kube: _resize(kube, (namespace, pod), container, units, wait_s, shown.say),
            doing="",
            **where,
        )
    verdict, _, words = outcome.partition(": ")
    if verdict != "done":
        raise click.ClickException(f"{namespace}/{pod} is not resized: {words or outcome}.")
    click.echo(f"{namespace}/{pod} resized: {words}.")


async def _resize(
    kube: "Kube",
    pod: tuple[str, str],
    container: str,
    units: int,
    wait_s: float,
    tell: "Callable[[str], None]",
) -> str:
    from gpupool.cli import named_pods
    from gpupool.orders.shares import resize
    from kubeclient.errors import NotFound

    try:
        return await resize(kube, pod, container, units, wait_s, tell)
    except NotFound:
        await named_pods.advise(kube, pod[1], pod[0])
        raise
