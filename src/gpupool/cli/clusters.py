"""`gpupool clusters`: lists the local clusters of this machine."""

import click

from gpupool.cli.tables import table
from gpupool.local.home import ClusterDirectory, home
from gpupool.local.server_process import running_server


@click.command("clusters")
def command() -> None:
    """List the clusters of this machine.

    \b
    Examples:
      gpupool clusters
    """
    rows = [_row(cluster) for cluster in home().clusters()]
    if rows:
        click.echo(table(("NAME", "STATE", "API SERVER", "DATA"), rows))
    else:
        click.echo("There is no cluster yet. Make one: gpupool up", err=True)


def _row(cluster: ClusterDirectory) -> tuple[str, str, str, str]:
    server = running_server(cluster)
    state = server.state if server else "Stopped"
    where = f"https://127.0.0.1:{server.port}" if server and server.port else "<none>"
    return cluster.name, state, where, str(cluster.path)
