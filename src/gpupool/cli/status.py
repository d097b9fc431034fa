"""`gpupool status`: shows whether a cluster runs and answers, and where."""

import sys

import click

from gpupool.cli.options import name_option
from gpupool.local.home import ClusterDirectory, home
from gpupool.local.server_process import Server, ask_server, running_server

_READY_LIMIT_S = 2.0
NOT_RUNNING = 3  # the exit code of init scripts for "not running"; 1 is for errors


@click.command("status")
@name_option
def command(name: str) -> None:
    """Show whether a cluster runs, and where.

    The exit code is 0 when it runs and answers, 3 when it does not.
    """
    cluster = home().existing(name)
    server = running_server(cluster)
    state = _state(cluster, server)
    click.echo(f"Name:        {cluster.name}")
    click.echo(f"State:       {state}")
    if server and server.port:
        click.echo(f"API server:  https://127.0.0.1:{server.port}")
    if server:
        click.echo(f"Process:     {server.pid}")
    click.echo(f"Kubeconfig:  {cluster.kubeconfig}")
    click.echo(f"Data:        {cluster.path}")
    click.echo(f"Log:         {cluster.log_file}")
    sys.exit(0 if state == "Running" else NOT_RUNNING)


def _state(cluster: ClusterDirectory, server: Server | None) -> str:
    if server is None:
        return "Stopped"
    if not server.port:
        return "Stopping" if server.is_stopping else "Starting"
    answer = ask_server(cluster.path, server.port, "/readyz", timeout_s=_READY_LIMIT_S)
    return "NotAnswering" if answer is None else "Running"
