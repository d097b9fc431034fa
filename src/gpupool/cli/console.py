"""`gpupool console`: shows the cluster's cards in a browser."""

import os
import sys
from typing import TYPE_CHECKING

import click

from gpupool.cli.browser import from_elsewhere
from gpupool.cli.numbers import Whole
from gpupool.cli.options import access_options
from gpupool.cli.programs import run_with_access

if TYPE_CHECKING:
    from gpupool.console.overview import ClusterView
    from kubeclient.access import Access
    from kubeclient.client import Kube

_DEFAULT_PORT = 8080


@click.command("console")
@click.option(
    "--port",
    type=Whole(0, 65535),
    metavar="PORT",
    default=_DEFAULT_PORT,
    show_default=True,
    help="Port on 127.0.0.1; 0: any free one.",
)
@access_options
def command(port: int, **where: str) -> None:
    """Show the cluster's GPUs in a browser, until stopped.

    It only reads, with your own rights. The address that it prints contains a key: whoever has
    the key sees what you may see. Inside a pod there is no key: each visitor signs in with a token
    of the cluster. Reach it there with `kubectl port-forward`.

    \b
    Examples:
      gpupool console
      gpupool console --port 0 --context training
    """
    import secrets

    from gpupool.console.run import ConsoleSettings, by_token, run_console
    from kubeclient.credentials import is_pod

    serves_others = not where.get("kubeconfig") and is_pod(os.environ)
    settings = ConsoleSettings(port, "" if serves_others else secrets.token_urlsafe(16))

    def ready(listens_on: int) -> None:
        query = f"?key={settings.key}" if settings.key else ""
        link = f"http://127.0.0.1:{listens_on}/{query}"
        click.echo(f"The console is at {link}")
        is_seen = sys.stdout.isatty() and not serves_others
        if is_seen and (words := from_elsewhere(link, os.environ)):
            click.echo(f"{words}\n")
        click.echo("Ctrl-C ends it.")

    async def work(kube: "Kube", access: "Access") -> None:
        # An error in the terminal is better than one on every page.
        await kube.page("/version")
        if serves_others:
            await run_console(None, by_token(access), look, settings, ready)
        else:
            await run_console(kube, None, look, settings, ready)

    run_with_access(work, "gpupool-console", **where)


async def look(kube: "Kube") -> "ClusterView":
    """Reads nodes, allocations and waiting GPU pods. Raises KubeError."""
    from gpupool.console.overview import ClusterView, Waiting
    from gpupool.scheduler.follow import read_cluster
    from gpupool.scheduler.pending import request_with_volumes
    from kubeclient.resources import PODS

    state = await read_cluster(kube)
    homeless = await kube.list(PODS, query={"fieldSelector": "spec.nodeName="})
    waiting = [
        Waiting(request_with_volumes(pod, state.storage), pod["metadata"]["creationTimestamp"])
        for pod in homeless.items
        if "deletionTimestamp" not in pod["metadata"]
    ]
    waiting.sort(key=lambda each: each.since)
    return ClusterView(state.cluster, tuple(each for each in waiting if each.request.gpus))
