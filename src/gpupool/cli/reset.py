"""`gpupool reset`: stops a cluster and deletes its data."""

import sys

import click

from gpupool.cli.down import PATIENCE_S, wait_for_others
from gpupool.cli.options import existing_name_option
from gpupool.cli.progress import progress
from gpupool.local.deletion import delete_cluster
from gpupool.local.home import CannotUse, home
from gpupool.local.merging import verify_unmerge
from gpupool.local.server_process import stop_server

_ATTEMPTS = 3


@click.command("reset")
@existing_name_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(name: str, yes: bool) -> None:
    """Stop a cluster and delete its data: objects, keys, kubeconfig, log.

    The next `gpupool up` makes a new one.

    \b
    Examples:
      gpupool reset
      gpupool reset --name training --yes
    """
    from gpupool.cli.which_cluster import chosen

    place = home()
    cluster = chosen(name)
    name = cluster.name
    if not yes:
        _ask(f'Delete cluster "{name}" and all of {cluster.path}?', name)
    # What may be refused comes before the server is stopped.
    wait_for_others(place)
    verify_unmerge(cluster)
    for _ in range(_ATTEMPTS):  # somebody may start it again: stop that server, too
        with progress(f'Deleting cluster "{name}"') as shown:
            shown.say("it stops")
            stop_server(cluster, patience_s=PATIENCE_S)
            shown.say("its data")
            deleted = delete_cluster(place, name)
        if deleted:
            if deleted.unmerged:
                click.echo(f"Its entry in {deleted.unmerged} is removed.")
            click.echo(f'Cluster "{name}" is deleted.')
            return
    raise CannotUse(f'Cluster "{name}" is not deleted: it still runs, or was started again.')


def _ask(question: str, name: str) -> None:
    try:
        is_sure = click.confirm(question)
    except click.Abort:
        if sys.stdin.isatty():  # Ctrl-C
            raise
        click.echo()
        command = f"gpupool reset --name {name} --yes"
        raise CannotUse(f"Nobody answered, so nothing is deleted. Say it with: {command}") from None
    if not is_sure:
        raise click.Abort
