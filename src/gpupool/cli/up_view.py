"""What `gpupool up` says: whether all nodes are there, where things are, and what to do next."""

import shlex
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from gpupool.cli.output.layout import layout_of_output
from gpupool.cli.output.table import Column, Shorten, Table, Tone
from gpupool.local import DEFAULT_NAME
from gpupool.local.home import ClusterDirectory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpupool.local.pool_readiness import Pools
    from kubeclient.objects import Obj

_POOL_COLUMNS: "Sequence[Column[Obj]]" = (
    Column("POOL", lambda pool: pool["metadata"]["name"], shorten=Shorten.MIDDLE),
    Column(
        "STATUS",
        lambda pool: _phase(pool),
        tone=lambda pool: Tone.GOOD if _phase(pool) == "Active" else Tone.CAUTION,
    ),
    Column("INSTANCE TYPE", lambda pool: pool["spec"]["instanceType"], shorten=Shorten.MIDDLE),
    Column("NODES", lambda pool: _nodes(pool, "nodes")),
    Column("READY", lambda pool: _nodes(pool, "readyNodes")),
)


def started_words(name: str, took_s: float, pools: "Pools | None") -> str:
    """Never "ready" while nodes are missing."""
    if pools is None or not pools.wanted:
        return f'Cluster "{name}" is ready after {took_s:.1f} s.'
    nodes = f"{pools.ready} of {pools.wanted} nodes are ready"
    if pools.waiting or pools.ready < pools.wanted:
        look = "See how they come: kubectl get nodepools -w"
        return f'Cluster "{name}" runs after {took_s:.1f} s, but only {nodes}. {look}'
    return f'Cluster "{name}" is ready after {took_s:.1f} s. {nodes}.'


def places_words(cluster: ClusterDirectory, port: int) -> str:
    return (
        f"\n  API server   https://127.0.0.1:{port}"
        f"\n  kubeconfig   {cluster.kubeconfig}"
        f"\n  log          {cluster.log_file}"
    )


def pools_words(pools: "Pools | None") -> str:
    if pools is None or not pools.found:
        return ""
    table = Table("Pool", _POOL_COLUMNS, pools.found, lambda pool: pool)
    shown = "\n".join(table.lines(layout_of_output(indent=2)))
    return f"\n\n{textwrap.indent(shown, '  ')}"


def _phase(pool: "Obj") -> str:
    return str(pool.get("status", {}).get("phase", "Initializing"))


def _nodes(pool: "Obj", which: str) -> str:
    return str(pool.get("status", {}).get(which, 0))


def next_words(cluster: ClusterDirectory, context: str = "") -> str:
    """What one wants next. `context`: of the user's own kubeconfig, if the cluster is in it."""
    gpupool = own_command()
    if context:
        chosen = f" --context {context}"
        first = [(f"kubectl{chosen} get nodes", "")]
    else:
        chosen = ""
        first = [
            (export_words(cluster), ""),
            ("kubectl get nodes", ""),
        ]
    name = "" if cluster.name == DEFAULT_NAME else f" --name {cluster.name}"
    then = [
        (f"{gpupool} gpu list{chosen}", "the cards and their health"),
        (f"{gpupool} console{chosen}", "the same in a browser, and who holds what"),
        (f"{gpupool} example notebook{name}", "JupyterLab with a card"),
    ]
    width = max(len(command) for command, _ in then)
    lines = [command for command, _ in first]
    lines += [f"{command.ljust(width)}   # {what}" for command, what in then]
    return "\n".join(["\nNext:", *(f"  {line}" for line in lines)])


def export_words(cluster: ClusterDirectory) -> str:
    """The line that lets kubectl and gpupool find the cluster."""
    return f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}"


def own_command() -> str:
    """How this shell finds `gpupool`: after `make up` it is in .venv, and not yet in the PATH."""
    if shutil.which("gpupool"):
        return "gpupool"
    beside = Path(sys.executable).with_name("gpupool")
    if not beside.exists():
        return "gpupool"
    try:
        shown = beside.relative_to(Path.cwd())
    except (ValueError, OSError):  # elsewhere, or there is no current directory any more
        shown = beside
    return shlex.quote(str(min(shown, beside, key=lambda path: len(path.parts))))
