"""`gpupool cleanup`: removes what an installation leaves behind in the API."""

import click

from gpupool.cli.numbers import Real
from gpupool.cli.options import access_options
from gpupool.cli.programs import ask_cluster


@click.command("cleanup")
@access_options
@click.option(
    "-n",
    "--namespace",
    default="kube-system",
    show_default=True,
    help="Namespace of the installation.",
)
@click.option(
    "--wait",
    type=Real(min=0),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the programs to end.",
)
def command(kubeconfig: str, context: str, namespace: str, wait: float) -> None:
    """Remove what an installation leaves behind, once it is uninstalled.

    That is what its programs wrote to nodes, their Lease and their Secret. Running pods and what
    people wrote to nodes stay as they are. `helm uninstall` runs this command by itself.
    """
    import time

    from gpupool.agent.cleanup import StillThere, clean_up, wait_until_gone
    from kubeclient.client import Kube

    async def work(kube: Kube) -> int:
        await wait_until_gone(kube, namespace, wait, time.monotonic)
        return await clean_up(kube, namespace)

    try:
        nodes = ask_cluster(work, kubeconfig=kubeconfig, context=context)
    except StillThere as error:
        raise click.ClickException(
            f"gpupool still runs: {error}. Uninstall it first: helm uninstall gpupool."
        ) from error
    click.echo(f"Nothing of gpupool is left in the API server; {nodes} nodes were cleaned.")
