"""`gpupool replay`: replays a trace offline through the real engine, to compare policies."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.known_names import policies
from gpupool.cli.numbers import Real, Whole
from gpupool.cli.options import POLICY_NAMES
from gpupool.cli.output.layout import Layout
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.output.table import API_VERSION, Column, Document, Table
from gpupool.cli.output.text import width_of
from gpupool.cli.progress import progress

if TYPE_CHECKING:
    from gpupool.replay.study import Method, Outcome
    from gpupool.replay.trace import Trace

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Out(click.Path):
    """A file that will be written after the replay, which may take hours."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        file = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = file.parent
        if not folder.is_dir():
            raise click.ClickException(
                f"{file}: wanted a path in a directory that exists, found: {folder}."
            )
        if not file.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise click.ClickException(
                f"{file}: wanted a directory that you may write to, found: {folder}."
            )
        return file


class _Picture(_Out):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        file = super().convert(value, param, ctx)
        if file.suffix.lower() not in ("", ".svg"):
            raise click.ClickException(
                f"{file}: curves are written as SVG. Name a file that ends with .svg."
            )
        return file


@click.command("replay")
@click.argument("pods", type=_FILE, required=False)
@click.option("--nodes", type=_FILE, help="The trace's nodes; a snapshot has its own.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    shell_complete=policies,
    help=f"Packing policy: {POLICY_NAMES}; may be given several times.  [default: residue]",
)
@click.option(
    "--seeds",
    default="0",
    show_default=True,
    help="One random seed, or several as in 0:10. With --timed: of the --synthetic traces.",
)
@click.option(
    "--churn",
    type=Real(1, 1000),
    metavar="PERCENT",
    help="Pods arrive and leave, at this load.",
)
@click.option("--timed", is_flag=True, help="Use the times of the trace: pods wait, run and leave.")
@click.option(
    "--load",
    type=Real(1, 1000),
    metavar="PERCENT",
    help="With --timed: a long stream of the trace's pods that asks for so much of the GPUs.",
)
@click.option(
    "--reservations",
    type=click.Choice(["on", "off", "both"]),
    default="on",
    show_default=True,
    help="With --timed: whether room is kept for pods that wait for long.",
)
@click.option(
    "--arrivals", type=_FILE, help="File with the order of arrival: one pod name per line."
)
@click.option("--placements", type=_Out(), help="Write every decision to this CSV file.")
@click.option("--plot", type=_Picture(), help="Write the curves to this SVG file.")
@click.option(
    "--synthetic",
    type=Whole(1, 20_000),
    metavar="NODES",
    help="Generate a trace with this many nodes.",
)
@click.option(
    "--large-jobs",
    is_flag=True,
    help="With --synthetic: half of the GPU is asked for by jobs of 8 cards and more, and gangs.",
)
@output_options("json", "yaml")
def command(output: Output, **_given: object) -> None:
    """Replay a trace of pods against the engine that schedules real ones.

    PODS is a CSV or JSON file in the format of the openb traces or in a plainer one, or a snapshot
    of a live cluster (gpupool snapshot, or kubectl get nodes,pods -A -o json). By default the pods
    arrive in random order, and further pods are drawn from them, until 130 % of the GPUs were
    requested. No pod leaves. What the figures mean is in docs/packing.md.

    \b
    Examples:
      gpupool replay --synthetic 200 --policy residue --policy best-fit
      gpupool replay pods.csv --nodes nodes.csv --seeds 0:10 -o json
      gpupool replay pods.csv --nodes nodes.csv --churn 95 --plot plot.svg
      gpupool replay pods.csv --nodes nodes.csv --timed --reservations both
    """
    from gpupool.replay.trace import TraceError

    try:
        _replay(click.get_current_context().params, output)
    except TraceError as error:
        raise click.ClickException(str(error)) from error


def _replay(given: dict[str, object], output: Output) -> None:
    from gpupool.replay.arrivals import seeds_of
    from gpupool.replay.study import prepared

    policies = _policies(given["policies"])
    seeds = list(seeds_of(str(given["seeds"])))
    runs = len(policies) * len(seeds) * (1 + (given["reservations"] == "both"))
    if given["placements"] and runs > 1:
        raise click.UsageError("--placements is for one policy and one seed at a time.")
    in_order = given["arrivals"] or (given["timed"] and not given["synthetic"])
    if in_order and len(seeds) > 1:
        raise click.UsageError("--seeds: nothing is random in the arrivals that the trace states.")
    with progress("Reading the trace"):
        first = _trace(given, seeds[0])
        method = _method(first, given)
        # Timed, all that is random is how a trace is made.
        others = [_trace(given, seed) for seed in seeds[1:]] if given["timed"] else []
        traces = [prepared(trace, method) for trace in (first, *others)]
    found = _run(traces, method, policies, seeds)
    output.show(_Study(traces, method, found))  # first: a full disk must not cost the figures
    _write_files(traces[0], method, found, given)


def _policies(given: object) -> list[str]:
    from gpupool.engine.policies import DEFAULT, POLICIES

    names = list(dict.fromkeys(given)) if isinstance(given, tuple) and given else [DEFAULT]
    for name in names:
        if name not in POLICIES:
            known = ", ".join(POLICIES)
            words = f'there is no policy "{name}"; there are {known}.'
            raise click.BadParameter(words, param_hint="'--policy'")
    return names


def _trace(given: dict[str, object], seed: int) -> "Trace":
    from gpupool.replay.files import read_trace
    from gpupool.replay.synthetic import large_trace, synthetic_trace

    pods, nodes, synthetic = given["pods"], given["nodes"], given["synthetic"]
    if isinstance(synthetic, int):
        if pods or nodes:
            raise click.UsageError("--synthetic makes a trace of its own; name no files with it.")
        # Elsewhere a seed is for the order of arrival, and all arrive from the same trace.
        seed = seed if given["timed"] else 0
        make = large_trace if given["large_jobs"] else synthetic_trace
        return make(synthetic, seed)
    if given["large_jobs"]:  # before the files are looked at
        raise click.UsageError("--large-jobs is for --synthetic.")
    if not isinstance(pods, Path):
        raise click.UsageError("Name a file of pods, or try --synthetic 200.")
    return read_trace(pods, nodes if isinstance(nodes, Path) else None)


def _method(trace: "Trace", given: dict[str, object]) -> "Method":
    from gpupool.replay.arrivals import from_file
    from gpupool.replay.study import Method

    churn, arrivals = given["churn"], given["arrivals"]
    if sum(map(bool, (churn, given["timed"], arrivals))) > 1:
        raise click.UsageError("--churn, --timed and --arrivals exclude one another.")
    if not given["timed"] and (given["load"] or given["reservations"] != "on"):
        raise click.UsageError("--load and --reservations are for --timed.")
    if isinstance(churn, float):
        return Method("churn", churn / 100)
    if isinstance(arrivals, Path):
        return Method("filling", given=from_file(trace, arrivals))
    if not given["timed"]:
        return Method("filling")
    load = given["load"]
    reserves = {"on": (True,), "off": (False,), "both": (True, False)}[str(given["reservations"])]
    return Method("timed", load / 100 if isinstance(load, float) else 0.0, reserves=reserves)


def _run(
    traces: "list[Trace]", method: "Method", policies: list[str], seeds: list[int]
) -> list["Outcome"]:
    from gpupool.replay.study import decisions_ahead, outcomes

    total = sum(decisions_ahead(trace, method, seeds) for trace in traces) * len(policies)
    with progress(f"Replaying {sum(len(trace.pods) for trace in traces)} pods", total) as shown:
        return [
            outcome
            for trace in traces
            for outcome in outcomes(trace, method, policies, seeds, shown.advance)
        ]


def _write_files(
    trace: "Trace", method: "Method", found: list["Outcome"], given: dict[str, object]
) -> None:
    from gpupool.replay.plot import svg_of
    from gpupool.replay.report import panels_of, placements_csv

    placements, plot = given["placements"], given["plot"]
    if isinstance(placements, Path):
        placements.write_text(placements_csv(trace, method, found[0]), encoding="utf-8")
        click.echo(f"The decisions are in {placements}.", err=True)
    if isinstance(plot, Path):
        plot.write_text(svg_of(panels_of(method, found)), encoding="utf-8")
        click.echo(f"The curves are in {plot}.", err=True)


@dataclass(frozen=True, slots=True)
class _Study:
    """The page of all outcomes. Several traces: they are made with one seed each."""

    traces: "list[Trace]"
    method: "Method"
    found: "list[Outcome]"

    def lines(self, layout: Layout) -> list[str]:
        """A line for each policy; where that is wider than the terminal, a column for each."""
        from gpupool.replay.report import mean_rows

        head, rows = mean_rows(self.found)
        shown = _figures(head, rows).lines(replace(layout, width=None))
        if layout.width is not None and max(map(width_of, _plain(shown))) > layout.width:
            turned = zip(head, *rows, strict=True)
            head, *rows = ([str(cell) for cell in row] for row in turned)
            shown = _figures(head, rows).lines(layout)
        return [*([self._title()] if layout.headers else []), *shown]

    def _title(self) -> str:
        load = f" at {100 * self.method.load:g} %" if self.method.load else ""
        first, others = self.traces[0], len(self.traces) - 1
        also = f" (and {others} more, to seed {self.traces[-1].seed})" if others else ""
        return (
            f"{first.name}{also}: {_count(len(first.nodes), 'node')}, "
            f"{_count(first.capacity_milli // 1000, 'card')}, {_count(len(first.pods), 'pod')}; "
            f"{self.method.name}{load}{self._stream()}"
        )

    def _stream(self) -> str:
        window = self.traces[0].window
        if window is None:
            return ""
        hours = [f"{at_s / 3600:.1f}" for at_s in (window.stop_s, window.begin_s, window.end_s)]
        return f": a stream of {hours[0]} h, pods count that arrive from {hours[1]} to {hours[2]} h"

    def document(self) -> Document:
        from gpupool.replay.report import as_json

        return {
            "apiVersion": API_VERSION,
            "kind": "Replay",
            **as_json(self.traces[0], self.method, self.found),
        }

    def names(self) -> list[str]:
        return []

    def missing(self) -> str:
        return ""


def _count(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _figures(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table[Sequence[str]]:
    columns = [
        Column[Sequence[str]](title, lambda row, at=at: row[at])  # type: ignore[misc]  # bound now
        for at, title in enumerate(head)
    ]
    return Table("Figures", columns, rows, lambda row: {})


def _plain(lines: Sequence[str]) -> list[str]:
    return [click.unstyle(line) for line in lines]
