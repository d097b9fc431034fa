"""`gpupool report`: who asked for, was given and used how many GPU-hours, and who needs less."""

import time
from typing import TYPE_CHECKING

import click

from gpupool.cli.durations import Duration
from gpupool.cli.history_of import ask_history
from gpupool.cli.known_names import namespaces
from gpupool.cli.options import access_options
from gpupool.cli.output.options import Output, echo, output_options

if TYPE_CHECKING:
    from gpupool.cli.report_view import Report
    from gpupool.history.pages import History
    from kubeclient.client import Kube

_BY = ("namespace", "user", "pool", "workload")


@click.command("report")
@click.option(
    "--by",
    type=click.Choice(_BY),
    default="namespace",
    show_default=True,
    help="What makes a line.",
)
@click.option(
    "--since",
    "since_s",
    type=Duration(),
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How far to look back: 30m, 2h, 7d, up to 90d.",
)
@click.option(
    "--idle-for",
    "idle_s",
    type=Duration(),
    default="2h",
    show_default=True,
    metavar="TIME",
    help="From when on a pod that uses no card is called idle.",
)
@click.option(
    "--collector",
    "namespace",
    default="kube-system",
    show_default=True,
    metavar="NAMESPACE",
    shell_complete=namespaces,
    help="Where the collector runs, if it is not a local cluster.",
)
@output_options("wide", "csv", "json", "yaml", "html")
@access_options
def command(
    by: str, since_s: int, idle_s: int, namespace: str, output: Output, **where: str
) -> None:
    """Report GPU-hours asked for, given and used, idle pods, and who needs less.

    A GPU-hour is a whole card for an hour. Asked for: by pods that wait, too. What was given was
    used (kernels ran), idle (none did), or is unknown (nobody saw): the three add up. A user is
    whom the label or annotation gpupool.io/user of a pod names.

    \b
    Examples:
      gpupool report
      gpupool report --by workload --since 14d
      gpupool report --since 30d -o csv > usage.csv
      gpupool report --since 30d -o html > usage.html
    """
    from gpupool.cli.report_view import csv_text

    async def work(kube: "Kube", history: "History") -> "Report":
        return await made(kube, history, by, since_s, idle_s)

    report = ask_history(work, namespace, **where)
    if output.format == "csv":
        echo(csv_text(report), end="")
    elif output.format == "html":
        from gpupool.cli.report_html import html_text

        echo(html_text(report))
    else:
        output.show(report)


async def made(kube: "Kube", history: "History", by: str, since_s: int, idle_s: int) -> "Report":
    """Raises NoHistory and KubeError."""
    from gpupool.cli.idle import held_now, since_when
    from gpupool.cli.report_view import Report
    from gpupool.history.advice import advices
    from gpupool.history.series import Kind
    from gpupool.history.usage import idle_pods, usage_of

    now_s = time.time()
    since = now_s - since_s
    sums = await history.sums(Kind(by), since)
    containers = await history.sums(Kind.CONTAINER, since)
    recent = await history.sums(Kind.CONTAINER, now_s - idle_s)
    workloads = sums if by == Kind.WORKLOAD else await history.sums(Kind.WORKLOAD, since)
    held = await held_now(kube)
    total = await history.sums(Kind.CLUSTER, since)
    return Report(
        by,
        since_s,
        sums.since_s,
        sums.until_s,
        sorted((usage_of(s.name, x) for s, x in sums.of), key=lambda u: (-u.given, u.name)),
        total.of[0][1] if total.of else None,
        await history.points(Kind.CLUSTER, "", since),
        idle_pods(recent.of, since_when(held), int(now_s - idle_s), int(now_s)),
        advices(containers.of, {s.name: x for s, x in workloads.of}, held),
    )
