"""`gpupool kubeconfig`: prints the kubeconfig of a cluster."""

import click

from gpupool.cli.options import existing_name_option
from gpupool.local.home import CannotUse, home


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
    cluster = home().existing(name)
    try:
        click.echo(cluster.kubeconfig.read_text(encoding="utf-8"), nl=False)
    except FileNotFoundError:
        raise CannotUse(
            f'Cluster "{name}" has no kubeconfig yet: start it with gpupool up.'
        ) from None
