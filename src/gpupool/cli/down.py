"""`gpupool down`: stops a cluster, or all of them."""

import click

from gpupool.cli.options import existing_name_option
from gpupool.cli.progress import progress
from gpupool.local.home import Home, home
from gpupool.local.server_process import stop_server

PATIENCE_S = 15


@click.command("down")
@existing_name_option
@click.option("--all", "every", is_flag=True, help="Stop all clusters of this machine.")
def command(name: str, every: bool) -> None:
    """Stop a cluster; its data stays.

    Pods are stopped with it. `gpupool up` starts it again with everything in it.

    \b
    Examples:
      gpupool down
      gpupool down --name training
      gpupool down --all
    """
    from gpupool.cli.which_cluster import chosen

    if every and name:
        raise click.UsageError("--all stops all clusters, --name one: give one of them.")
    place = home()
    clusters = place.clusters() if every else [chosen(name)]
    wait_for_others(place)
    for cluster in clusters:
        with progress(f'Stopping cluster "{cluster.name}"'):
            stopped = stop_server(cluster, patience_s=PATIENCE_S)
        if stopped:
            click.echo(f'Cluster "{cluster.name}" is stopped. Its data stays in {cluster.path}.')
        else:
            click.echo(f'Cluster "{cluster.name}" is not running.')


def wait_for_others(place: Home) -> None:
    """Until a start that has begun has its process. Raises CannotUse if one never gets done."""
    with progress("Waiting for another command that starts a cluster"), place.alone():
        pass
