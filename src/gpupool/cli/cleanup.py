"""`gpupool cleanup`: removes what an installation leaves behind in the API."""

import click

from gpupool.cli.known_names import namespaces
from gpupool.cli.numbers import Real
from gpupool.cli.options import access_options
from gpupool.cli.programs import ask_cluster
from gpupool.cli.progress import progress


@click.command("cleanup")
@access_options
@click.option(
    "-n",
    "--namespace",
    default="kube-system",
    show_default=True,
    shell_complete=namespaces,
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

    \b
    Examples:
      gpupool cleanup
      gpupool cleanup -n gpupool --wait 300
    """
    import time

    from gpupool.agent.cleanup import StillThere, clean_up, wait_until_gone
    from kubeclient.client import Kube

    async def work(kube: Kube) -> int:
        await wait_until_gone(
            kube, namespace, wait, time.monotonic, lambda who: shown.say(f"{who} still runs")
        )
        return await clean_up(kube, namespace, count)

    def count(done: int, nodes: int) -> None:
        shown.say(f"{done} of {nodes} nodes")

    try:
        with progress("Cleaning up") as shown:
            nodes = ask_cluster(work, doing="", kubeconfig=kubeconfig, context=context)
    except StillThere as error:
        raise click.ClickException(
            f"gpupool still runs: {error}. Uninstall it first: helm uninstall gpupool."
        ) from error
    click.echo(f"Nothing of gpupool is left in the API server; {nodes} nodes were cleaned.")
