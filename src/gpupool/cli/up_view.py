"""What `gpupool up` says: whether all nodes are there, where things are, and what to do next."""

import textwrap
from typing import TYPE_CHECKING

from gpupool.cli.next_steps import Step, export_step, own_command, steps_words
from gpupool.cli.output.layout import layout_of_output
from gpupool.cli.output.table import Column, Shorten, Table, Tone
from gpupool.local import DEFAULT_NAME
from gpupool.local.home import ClusterDirectory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpupool.local.pool_readiness import Pools
    from kubeclient.objects import Obj

_NOTEBOOK_MODEL = "Tesla M40"  # which examples/notebook.yaml asks for

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
    are = "node is" if pools.wanted == 1 else "nodes are"
    nodes = f"{pools.ready} of {pools.wanted} {are} ready"
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


def next_words(
    cluster: ClusterDirectory,
    context: str = "",
    *,
    more: "Sequence[Step]" = (),
    notebook: str = "notebook",
) -> str:
    """What one wants next. `context`: of the user's own kubeconfig, if the cluster is in it.
    `more`: for an example that runs already. `notebook`: the example to offer; empty: none."""
    gpupool = own_command()
    chosen = f" --context {context}" if context else ""
    first = [] if context else [export_step(cluster)]
    name = "" if cluster.name == DEFAULT_NAME else f" --name {cluster.name}"
    lab = Step(f"{gpupool} example {notebook}{name}", "JupyterLab with a card")
    steps = [
        *first,
        Step(f"kubectl{chosen} get nodes"),
        Step(f"{gpupool} gpu list{chosen}", "cards and their health"),
        Step(f"{gpupool} console{chosen}", "the same in a browser"),
        *([lab] if notebook else []),
        *more,
    ]
    return f"\n{steps_words(steps)}"


def notebook_for(pools: "Pools | None") -> str:
    """The example of a notebook that gets a card in these pools; empty: none does, or
    nobody has asked for the pools."""
    from gpupool.contract.nodes import gpu_mode
    from gpupool.core.gpu import GpuMode
    from gpupool.local.config.catalogue import catalogue

    types = catalogue().instance_types
    specs = [pool["spec"] for pool in (pools.found if pools else ())]
    whole = [each for each in specs if gpu_mode(each.get("labels") or {}) is GpuMode.WHOLE]
    kinds = [types.get(each["instanceType"]) for each in whole if each.get("count")]
    models = {kind.gpu.name for kind in kinds if kind and kind.gpu}
    if _NOTEBOOK_MODEL in models:
        return "notebook"
    return "notebook-service" if models else ""
