"""`gpupool status`: shows whether a cluster runs and answers, where, and what fails in it."""

import sys

import click

from gpupool.cli.exit_codes import DONE, NOT_RUNNING
from gpupool.cli.options import existing_name_option
from gpupool.local.home import home
from gpupool.local.server_process import running_server
from gpupool.local.server_state import ANSWERING, state_of


@click.command("status")
@existing_name_option
def command(name: str) -> None:
    """Show whether a cluster runs, where, and what fails in it.

    The exit code is 0 when it runs and answers, 3 when it does not. The state is Degraded when
    a program of the cluster fails; it is started again by itself.

    \b
    Examples:
      gpupool status
      gpupool status --name training
    """
    cluster = home().existing(name)
    server = running_server(cluster)
    state, troubles = state_of(cluster, server)
    click.echo(f"Name:        {cluster.name}")
    click.echo(f"State:       {state}")
    for trouble in troubles:
        click.echo(f"Trouble:     {trouble}")
    if server and server.port:
        click.echo(f"API server:  https://127.0.0.1:{server.port}")
    if server:
        click.echo(f"Process:     {server.pid}")
    click.echo(f"Kubeconfig:  {cluster.kubeconfig}")
    click.echo(f"Data:        {cluster.path}")
    click.echo(f"Log:         {cluster.log_file}")
    sys.exit(DONE if state in ANSWERING else NOT_RUNNING)
