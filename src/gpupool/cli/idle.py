"""`gpupool idle`: pods that hold cards and do not use them; gives back what was scaled to zero."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpupool.cli.durations import Duration, words
from gpupool.cli.history_of import ask_history
from gpupool.cli.known_names import namespaces
from gpupool.cli.options import access_options, chosen_namespace
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpupool.cli.output.table import Table
    from gpupool.history.facts import Held
    from gpupool.history.pages import History
    from gpupool.history.usage import IdlePod
    from kubeclient.client import Kube


@click.command("idle")
@click.option(
    "--for",
    "idle_s",
    type=Duration(),
    default="2h",
    show_default=True,
    metavar="TIME",
    help="For how long they must not have used a card: 30m, 2h, 7d.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    shell_complete=namespaces,
    help="Only pods of this namespace.  [default: all]",
)
@click.option(
    "--collector",
    default="kube-system",
    show_default=True,
    metavar="NAMESPACE",
    shell_complete=namespaces,
    help="Where the collector runs, if it is not a local cluster.",
)
@click.option(
    "--scale-to-zero",
    "zero",
    default="",
    metavar="KIND/NAME",
    help="Scale this workload to zero, if all its pods with cards are idle.",
)
@click.option(
    "--restore",
    "back",
    default="",
    metavar="KIND/NAME",
    help="Give a workload that was scaled to zero its replicas back.",
)
@output_options("wide", "json", "yaml", "name")
@access_options
def command(
    idle_s: int,
    namespace: str,
    collector: str,
    output: Output,
    zero: str,
    back: str,
    **where: str,
) -> None:
    """List pods that hold cards and have not used them for some time.

    A pod is listed if it has held its cards for all of that time and none of its kernels ran, as
    far as its agent told. If nobody told for a tenth of the time or more, it is not listed.

    \b
    Examples:
      gpupool idle
      gpupool idle --for 12h -n research
      gpupool idle --for 1d --scale-to-zero Deployment/trainer -n research
      gpupool idle --restore Deployment/trainer -n research
    """
    if zero and back:
        raise click.UsageError("Either --scale-to-zero or --restore.")
    if back:
        from gpupool.cli.idle_scaling import restore

        inside = chosen_namespace(namespace, where)
        click.echo(ask_cluster(lambda kube: restore(kube, back, inside), **where))
        return
    if zero:
        click.echo(_scaled(zero, chosen_namespace(namespace, where), idle_s, collector, where))
        return

    async def work(kube: "Kube", history: "History") -> "Table[IdlePod]":
        from gpupool.cli import namespaced
        from gpupool.history.series import Kind
        from gpupool.history.usage import idle_pods

        now_s = time.time()
        prefix = f"{namespace}/" if namespace else ""
        sums = await history.sums(Kind.CONTAINER, now_s - idle_s, prefix=prefix)
        if namespace:
            await namespaced.check(kube, namespace)
        running = await running_containers(kube, namespace)
        return idle_table(
            idle_pods(sums.of, running, int(now_s - idle_s), int(now_s)), idle_s, now_s
        )

    output.show(ask_history(work, collector, **where))


def _scaled(zero: str, namespace: str, idle_s: int, collector: str, where: dict[str, str]) -> str:
    async def work(kube: "Kube", history: "History") -> str:
        from gpupool.cli.idle_scaling import scale_to_zero
        from gpupool.history.facts import pod_facts
        from gpupool.history.series import Kind
        from gpupool.history.usage import idle_pods
        from kubeclient.resources import PODS

        now_s = time.time()
        sums = await history.sums(Kind.CONTAINER, now_s - idle_s, prefix=f"{namespace}/")
        pods = (await kube.list(PODS, namespace)).items
        held = [each for pod in pods for each in pod_facts(pod) if each.until_ms is None]
        running = {f"{h.namespace}/{h.pod}/{h.container}": h.from_ms / 1000 for h in held}
        idle = idle_pods(sums.of, running, int(now_s - idle_s), int(now_s))
        own = [
            name
            for name, h in zip(running, held, strict=True)
            if h.workload.lower() == zero.lower()
        ]
        return await scale_to_zero(kube, zero, namespace, idle, own)

    return ask_history(work, collector, **where)


async def running_containers(kube: "Kube", namespace: str = "") -> dict[str, float]:
    """Those that hold cards now, as NAMESPACE/POD/CONTAINER, with the time since when."""
    return since_when(await held_now(kube, namespace))


async def held_now(kube: "Kube", namespace: str = "") -> "list[Held]":
    from gpupool.history.facts import pod_facts
    from kubeclient.resources import PODS

    pods = (await kube.list(PODS, namespace)).items
    held = [each for pod in pods for each in pod_facts(pod)]
    return [each for each in held if each.shares and each.until_ms is None]


def since_when(held: "Iterable[Held]") -> dict[str, float]:
    return {f"{h.namespace}/{h.pod}/{h.container}": h.from_ms / 1000 for h in held}


def idle_table(pods: "Sequence[IdlePod]", idle_s: int, now_s: float) -> "Table[IdlePod]":
    from gpupool.cli.output.table import Column, Shorten, Table, Tone
    from gpupool.cli.report_view import gib, idle_fields, stamp

    columns: list[Column[IdlePod]] = [
        Column("NAMESPACE", lambda row: row.namespace, shorten=Shorten.MIDDLE, rank=3),
        Column("POD", lambda row: row.pod, shorten=Shorten.MIDDLE),
        Column("WORKLOAD", lambda row: row.workload, shorten=Shorten.MIDDLE, rank=4),
        Column("USER", lambda row: row.user, optional=True, rank=2),
        Column("GPUS", lambda row: f"{row.held_cards:.2g}", right=True),
        Column("MEMORY", lambda row: gib(row.memory_mib), right=True, rank=5),
        Column("IDLE", lambda row: words(now_s - row.since_s), tone=lambda _: Tone.CAUTION),
        Column("LAST-USED", lambda row: stamp(row.active_s) or "never", rank=1),
        Column("NODE", lambda row: row.node, shorten=Shorten.MIDDLE, wide=True),
    ]
    return Table(
        "IdlePod",
        columns,
        pods,
        idle_fields,
        lambda row: f"{row.namespace}/{row.pod}",
        f"No pod has held cards without using them for {words(idle_s)}.",
    )
