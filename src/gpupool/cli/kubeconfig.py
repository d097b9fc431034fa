"""`gpupool kubeconfig`: prints the kubeconfig of a cluster."""

import click

from gpupool.cli.options import existing_name_option
from gpupool.local.home import CannotUse, start_command


@click.command("kubeconfig")
@existing_name_option
def command(name: str) -> None:
    """Print the kubeconfig of a cluster.

    It contains the token of the cluster's administrator: keep it secret.

    \b
    Examples:
      gpupool kubeconfig > cluster.kubeconfig
      gpupool kubeconfig --name training > training.kubeconfig
    """
    from gpupool.cli.which_cluster import chosen

    cluster = chosen(name)
    try:
        click.echo(cluster.kubeconfig.read_text(encoding="utf-8"), nl=False)
    except FileNotFoundError:
        up = start_command(cluster.name)
        raise CannotUse(f'Cluster "{cluster.name}" has no kubeconfig yet. Start it: {up}') from None
