"""`gpupool console`: the cluster in a browser."""

import os
import sys
from typing import TYPE_CHECKING

import click

from gpupool.cli.browser import from_elsewhere
from gpupool.cli.example_files import known_examples
from gpupool.cli.known_names import namespaces
from gpupool.cli.numbers import Whole
from gpupool.cli.options import access_options
from gpupool.cli.programs import default_kubeconfig, log_to_stderr, run_with_access

if TYPE_CHECKING:
    from gpupool.console.model import Model
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
@click.option(
    "--agents",
    default="kube-system",
    show_default=True,
    metavar="NAMESPACE",
    shell_complete=namespaces,
    help="Where the agents and the collector run, which are asked what cards do and did.",
)
@access_options
def command(port: int, agents: str, **where: str) -> None:
    """Show the cluster and its GPUs in a browser, until stopped.

    It has no rights of its own: it sees and does what you may. The address that it prints contains
    a key: whoever has the key may do the same, and may make, start, stop and delete clusters of
    this machine. The name in the address keeps cookies from other servers of this machine; for a
    browser that does not find it, write 127.0.0.1 instead. Inside a pod there is no key: each
    visitor signs in with a token of the cluster. Reach it there with `kubectl port-forward`.

    \b
    Examples:
      gpupool console
      gpupool console --port 0 --context training
    """
    import secrets
    from dataclasses import replace

    from gpupool.cli.console_platform import machines, platform
    from gpupool.cli.history_of import history_of
    from gpupool.console.run import ConsoleSettings, by_token, run_console
    from kubeclient.credentials import is_pod

    serves_others = not where.get("kubeconfig") and is_pod(os.environ)
    key = "" if serves_others else secrets.token_urlsafe(16)
    # Browsers send a host's cookies to all its ports. Nobody else can guess this host.
    host = "127.0.0.1" if serves_others else f"console-{secrets.token_hex(8)}.localhost"
    samples = {name: path.read_text("utf-8") for name, path in known_examples().items()}
    own = None if serves_others else platform(where.get("kubeconfig", ""))
    settings = ConsoleSettings(port, key, _cluster_name(where), samples, machines(), own)

    def ready(listens_on: int) -> None:
        query = f"?key={settings.key}" if settings.key else ""
        link = f"http://{host}:{listens_on}/{query}"
        click.echo(f"The console is at {link}")
        is_seen = sys.stdout.isatty() and not serves_others
        if is_seen and (words := from_elsewhere(link, os.environ)):
            click.echo(f"{words}\n")
        click.echo("Ctrl-C ends it.")

    async def work(kube: "Kube", access: "Access") -> None:
        with_past = replace(
            settings,
            history_of=lambda visitor: history_of(visitor, access.url, agents),
            agents=agents,
        )
        # An error in the terminal is better than one on every page.
        await kube.page("/version")
        if serves_others:
            await run_console(None, by_token(access), new_model, with_past, ready)
        else:
            await run_console(kube, None, new_model, with_past, ready)

    log_to_stderr()
    run_with_access(work, "gpupool-console", **where)


def _cluster_name(where: dict[str, str]) -> str:
    """As the kubeconfig calls it; in a pod nobody has given it a name."""
    from kubeclient.contexts import contexts_of

    file = where.get("kubeconfig") or default_kubeconfig()
    found = where.get("context") or contexts_of(os.environ, file).current
    return found or "cluster"


def new_model() -> "Model":
    """The cluster as the scheduler sees it. It is empty until its handlers are called."""
    from gpupool.console.model import Model
    from gpupool.scheduler.follow import empty_state, handlers_of
    from gpupool.scheduler.next_step import next_step
    from gpupool.scheduler.pending import request_with_volumes
    from kubeclient.resources import CSI_NODES

    state = empty_state()
    return Model(
        cluster=state.cluster,
        handlers=handlers_of(state),
        optional=(CSI_NODES,),
        request_of=lambda pod: request_with_volumes(pod, state.storage),
        next_step=lambda request: next_step(state.cluster, request),
    )
