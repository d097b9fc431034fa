"""`gpupool history`: runs the collector, which keeps what cards were given and used."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpupool.cli.idle_options import idle_options
from gpupool.cli.known_names import files, namespaces
from gpupool.cli.numbers import Whole
from gpupool.cli.options import access_options
from gpupool.cli.programs import log_to_stderr, run_program

if TYPE_CHECKING:
    from gpupool.history.idle_policy import IdlePolicy
    from kubeclient.client import Kube


@click.command("history")
@click.option(
    "--data",
    required=True,
    metavar="DIRECTORY",
    type=click.Path(file_okay=False, path_type=Path),
    shell_complete=files,
    help="Where its file is. It exists, and no other collector uses it.",
)
@click.option(
    "--agents",
    default="kube-system",
    show_default=True,
    metavar="NAMESPACE",
    shell_complete=namespaces,
    help="Where the agents run, which are asked for readings.",
)
@click.option(
    "--port",
    type=Whole(0, 65535),
    default=9447,
    show_default=True,
    metavar="PORT",
    help="Port on 127.0.0.1 where it answers; 0: any free one.",
)
@click.option(
    "--most-mib",
    type=Whole(16, 1_000_000),
    default=4096,
    show_default=True,
    metavar="MIB",
    help="How large its file may get. Then the oldest hours of single cards and pods go.",
)
@idle_options
@access_options
def command(
    data: Path, agents: str, port: int, most_mib: int, policy: "IdlePolicy | None", **where: str
) -> None:
    """Keep a history of what cards were given and used.

    `gpupool report` and `gpupool idle` read it. It follows nodes and pods, asks the agents once a
    minute, and keeps minutes for 4 hours, ten minutes for 3 days, and hours for 90 days. A local
    cluster has its own; elsewhere the chart runs it (history.enabled). Only `kubectl port-forward`,
    and commands that do the same, reach it.

    With --idle-warn it also warns workloads that do not use their cards, and with
    --idle-scale-to-zero it scales them to zero. `gpupool idle --restore` brings them back.

    \b
    Examples:
      gpupool history --data /var/lib/gpupool
      gpupool history --data /data --idle-warn 4h --idle-scale-to-zero 24h
    """
    from gpupool.health import LOOPBACK, Address, health_routes, serving
    from gpupool.history.collector import CollectorSettings, Watched, collect
    from gpupool.history.database import FILE
    from gpupool.history.idle_keeper import keep
    from gpupool.history.pages import FileHistory, history_app
    from gpupool.history.store import Store

    log_to_stderr()
    if not data.is_dir():
        raise click.ClickException(f"{data} is no directory. Make it, or mount one there.")

    async def work(kube: "Kube") -> None:
        async def keep_idle(watched: Watched) -> None:
            if policy is not None:
                await keep(kube, FileHistory(data / FILE), policy, watched.held)

        app = history_app(data / FILE)
        app.add_routes(health_routes())
        with Store(data / FILE, most_bytes=most_mib * 1024**2) as store:
            async with serving(app, Address(LOOPBACK, port)) as listens_on:
                click.echo(f"The history answers at http://{listens_on.host}:{listens_on.port}/")
                await collect(kube, store, CollectorSettings(agents), beside=keep_idle)

    run_program(work, "gpupool-history", **where)
