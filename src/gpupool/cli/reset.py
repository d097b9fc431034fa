"""`gpupool reset`: stops a cluster and deletes its data."""

import click

from gpupool.cli.down import PATIENCE_S
from gpupool.cli.options import name_option
from gpupool.local.home import home
from gpupool.local.merging import unmerge
from gpupool.local.server_process import stop_server


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
    stop_server(cluster, patience_s=PATIENCE_S)
    if merged := unmerge(cluster):
        click.echo(f"Its entry in {merged} is removed.")
    with place.alone():
        place.delete(cluster)
    click.echo(f'Cluster "{name}" is deleted.')
