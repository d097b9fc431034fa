"""`gpupool replay`: replays a trace offline through the real engine, to compare policies."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpupool.cli.numbers import Real, Whole
from gpupool.cli.tables import table

if TYPE_CHECKING:
    from gpupool.replay.study import Method, Outcome
    from gpupool.replay.trace import Trace

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUT = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command("replay")
@click.argument("pods", type=_FILE, required=False)
@click.option("--nodes", type=_FILE, help="The trace's nodes; a snapshot has its own.")
@click.option(
    "--policy", "policies", multiple=True, help="Packing policy; may be given several times."
)
@click.option(
    "--seeds", default="0", show_default=True, help="One random seed, or several as in 0:10."
)
@click.option(
    "--churn",
    type=Real(1, 1000),
    help="Pods arrive and leave, at this load in percent.",
)
@click.option("--timed", is_flag=True, help="Use the times of the trace: pods wait, run and leave.")
@click.option(
    "--arrivals", type=_FILE, help="File with the order of arrival: one pod name per line."
)
@click.option("--placements", type=_OUT, help="Write every decision to this CSV file.")
@click.option("--plot", type=_OUT, help="Write the curves to this SVG file.")
@click.option("--synthetic", type=Whole(1, 20_000), help="Generate a trace with this many nodes.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def command(**given: object) -> None:
    """Replay a trace of pods against the engine that schedules real ones.

    PODS is a CSV or JSON file in the format of the openb traces or in a plainer one, or a snapshot
    of a live cluster (kubectl get nodes,pods -A -o json). By default the pods arrive in random
    order, and further pods are drawn from them, until 130 % of the GPUs were requested. No pod
    leaves.

    \b
    gpupool replay --synthetic 200 --policy residue --policy best-fit --plot plot.svg
    gpupool replay pods.csv --nodes nodes.csv --seeds 0:10 -o json
    gpupool replay pods.csv --nodes nodes.csv --churn 95
    """
    from gpupool.replay.trace import TraceError

    try:
        _replay(click.get_current_context().params)
    except TraceError as error:
        raise click.ClickException(str(error)) from error


def _replay(given: dict[str, object]) -> None:
    from gpupool.replay.arrivals import seeds_of
    from gpupool.replay.report import as_json, mean_rows

    policies = _policies(given["policies"])
    seeds = list(seeds_of(str(given["seeds"])))
    if given["placements"] and len(policies) * len(seeds) > 1:
        raise click.UsageError("--placements is for one policy and one seed at a time.")
    trace = _trace(given)
    method = _method(trace, given)
    found = _run(trace, method, policies, seeds)
    _write_files(trace, method, found, given)
    if given["output"] == "json":
        click.echo(json.dumps(as_json(trace, method, found), indent=2))
    else:
        cards = trace.capacity_milli // 1000
        click.echo(
            f"{trace.name}: {len(trace.nodes)} nodes, {cards} cards, {len(trace.pods)} pods;"
            f" {method.name}{f' at {100 * method.load:g} %' if method.load else ''}"
        )
        click.echo(table(*mean_rows(found)))


def _policies(given: object) -> list[str]:
    from gpupool.engine.policies import DEFAULT, POLICIES

    names = list(dict.fromkeys(given)) if isinstance(given, tuple) and given else [DEFAULT]
    for name in names:
        if name not in POLICIES:
            known = ", ".join(POLICIES)
            words = f'there is no policy "{name}"; there are {known}.'
            raise click.BadParameter(words, param_hint="'--policy'")
    return names


def _trace(given: dict[str, object]) -> "Trace":
    from gpupool.replay.files import read_trace
    from gpupool.replay.synthetic import synthetic_trace

    pods, nodes, synthetic = given["pods"], given["nodes"], given["synthetic"]
    if isinstance(synthetic, int):
        if pods or nodes:
            raise click.UsageError("--synthetic makes a trace of its own; name no files with it.")
        return synthetic_trace(synthetic)
    if not isinstance(pods, Path):
        raise click.UsageError("Name a file of pods, or try --synthetic 200.")
    return read_trace(pods, nodes if isinstance(nodes, Path) else None)


def _method(trace: "Trace", given: dict[str, object]) -> "Method":
    from gpupool.replay.arrivals import from_file
    from gpupool.replay.study import Method

    churn, arrivals = given["churn"], given["arrivals"]
    if sum(map(bool, (churn, given["timed"], arrivals))) > 1:
        raise click.UsageError("--churn, --timed and --arrivals exclude one another.")
    if isinstance(churn, float):
        return Method("churn", churn / 100)
    if isinstance(arrivals, Path):
        return Method("filling", given=from_file(trace, arrivals))
    return Method("timed" if given["timed"] else "filling")


def _run(
    trace: "Trace", method: "Method", policies: list[str], seeds: list[int]
) -> list["Outcome"]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from gpupool.replay.study import decisions_ahead, outcomes

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        total = decisions_ahead(trace, method, seeds) * len(policies)
        task = bar.add_task(f"Replaying {len(trace.pods)} pods", total=total)

        def progress(decisions: int) -> None:
            bar.advance(task, decisions)

        return list(outcomes(trace, method, policies, seeds, progress))


def _write_files(
    trace: "Trace", method: "Method", found: list["Outcome"], given: dict[str, object]
) -> None:
    from gpupool.replay.plot import svg_of
    from gpupool.replay.report import panels_of, placements_csv

    placements, plot = given["placements"], given["plot"]
    if isinstance(placements, Path):
        placements.write_text(placements_csv(trace, method, found[0]), encoding="utf-8")
    if isinstance(plot, Path):
        plot.write_text(svg_of(panels_of(method, found)), encoding="utf-8")
