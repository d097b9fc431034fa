"""`gpupool top`: what nodes, cards and pods do now; live on a terminal."""

import importlib.util
import sys
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gpupool.cli.known_names import namespaces
from gpupool.cli.options import access_options
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.programs import ask_with_access

if TYPE_CHECKING:
    from kubeclient.client import Kube

_VIEWS = ("nodes", "cards", "pods")
_SORTS = ("util", "memory", "given", "idle", "power", "name")


@click.command("top")
@click.argument("view", type=click.Choice(_VIEWS), default="pods", metavar="[nodes|cards|pods]")
@click.option(
    "--sort", type=click.Choice(_SORTS), default="util", show_default=True, help="What goes first."
)
@click.option("--filter", "text", default="", help="Only lines that contain these words.")
@click.option(
    "--agents",
    "namespace",
    default="kube-system",
    show_default=True,
    metavar="NAMESPACE",
    shell_complete=namespaces,
    help="Where the agents and the collector run.",
)
@output_options("wide", "json", "yaml")
@access_options
def command(view: str, sort: str, text: str, namespace: str, output: Output, **where: str) -> None:
    """Show what nodes, cards or pods do now, live.

    On a terminal it stays, with keys: 1, 2, 3 choose nodes, cards or pods; s sorts; / filters; c
    cordons a card; z resizes and e explains a pod; q ends. Elsewhere, or with -o, it prints a table
    once. The live screen needs Textual: pip install 'gpupool[top]'.

    \b
    Examples:
      gpupool top
      gpupool top cards --sort memory
      gpupool top pods --filter research -o json
    """
    is_live = not _has_asked_for_text() and sys.stdout.isatty() and sys.stdin.isatty()
    if is_live and importlib.util.find_spec("textual") is not None:
        _live((view, sort, text), namespace, where)
        return
    from gpupool.cli.top_feed import Feed
    from gpupool.cli.top_rows import chosen, rows_of, table_of

    async def once(kube: "Kube", _url: str) -> Feed:
        feed = Feed(kube, namespace)
        await feed.read_once()
        return feed

    feed = ask_with_access(once, "Asking the agents", **where)
    output.show(table_of(view, chosen(rows_of(feed.now(), view), sort, text), text))
    if feed.unread:
        click.echo(f"Nothing is known of {feed.unread} nodes: {feed.problem}.", err=True)
    if is_live:
        click.echo("For a live screen: pip install 'gpupool[top]'", err=True)


def _has_asked_for_text() -> bool:
    """By -o, also by -o table, or --no-headers."""
    context = click.get_current_context()
    sources = map(context.get_parameter_source, ("output_format", "no_headers", "wide"))
    return any(source is not ParameterSource.DEFAULT for source in sources)


def _live(chosen: tuple[str, str, str], namespace: str, where: dict[str, str]) -> None:
    from gpupool.cli.history_of import history_of
    from gpupool.cli.top_feed import Feed
    from gpupool.cli.top_screen import Choice, TopScreen

    options = [f"--{key}={value}" for key, value in where.items() if value]

    async def stay(kube: "Kube", url: str) -> None:
        feed = Feed(kube, namespace)
        async with feed.running():
            past = history_of(kube, url, namespace)
            await TopScreen(feed, past, Choice(*chosen), options).run_async()

    ask_with_access(stay, **where)
