"""`gpupool reset`: stops a cluster and deletes its data."""

from contextlib import suppress

import click

from gpupool.cli.down import PATIENCE_S
from gpupool.cli.options import name_option
from gpupool.local.home import CannotUse, Home, home
from gpupool.local.merging import unmerge
from gpupool.local.server_process import stop_server
from localkube.data_directory import AlreadyRunning, Lock

_ATTEMPTS = 3


@click.command("reset")
@name_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(name: str, yes: bool) -> None:
    """Stop a cluster and delete its data: objects, keys, kubeconfig, log.

    The next `gpupool up` makes a new one.
    """
    place = home()
    cluster = place.existing(name)
    if not yes:
        click.confirm(f'Delete cluster "{name}" and all of {cluster.path}?', abort=True)
    for _ in range(_ATTEMPTS):
        stop_server(cluster, patience_s=PATIENCE_S)
        with suppress(AlreadyRunning):  # somebody has started it again: stop that one, too
            _delete(place, name)
            click.echo(f'Cluster "{name}" is deleted.')
            return
    raise CannotUse(f'Cluster "{name}" is not deleted: it still runs, or was started again.')


def _delete(place: Home, name: str) -> None:
    """Raises AlreadyRunning. With the lock, so that no server can start while files are deleted."""
    with place.alone():
        cluster = place.find(name)
        if cluster is None:
            return  # another `reset` was faster
        with Lock(cluster.path):
            if merged := unmerge(cluster):
                click.echo(f"Its entry in {merged} is removed.")
            place.delete(cluster)
