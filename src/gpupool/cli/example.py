"""`gpupool example`: applies one of the examples to a local cluster, and shows its pods."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpupool.cli.browser import from_elsewhere
from gpupool.cli.example_files import known_examples
from gpupool.cli.known_names import examples
from gpupool.cli.next_steps import Step, export_step, own_command, steps_words
from gpupool.cli.options import existing_name_option
from gpupool.cli.output.options import Output, echo, output_options
from gpupool.cli.programs import ask_cluster
from gpupool.cli.progress import progress
from gpupool.local.home import ClusterDirectory

if TYPE_CHECKING:
    from gpupool.cli.output.pages import Record
    from gpupool.cli.output.table import Table
    from kubeclient.objects import Obj


@click.command("example")
@click.argument("example", required=False, shell_complete=examples)
@click.option(
    "--no-install",
    is_flag=True,
    help="Install nothing. Without JupyterLab, a notebook is a page that lists its cards.",
)
@existing_name_option
@output_options("wide", "json", "yaml", "name")
def command(example: str | None, name: str, no_install: bool, output: Output) -> None:
    """Run one of the examples, and show which cards its pods get.

    Without a name it lists them. They are ordinary manifests: `kubectl delete -f` removes them.
    The first notebook installs JupyterLab into the Python environment of gpupool.

    \b
    Examples:
      gpupool example
      gpupool example shared-gpus
      gpupool example notebook --name training
    """
    if example is None:
        output.show(_list(known_examples()))
        return
    if output.format == "name":
        raise click.UsageError("-o name is for the list of examples.")
    path = example_named(example)
    from gpupool.cli.which_cluster import chosen_running

    cluster = chosen_running(name)
    done = run_example(path, cluster, installs=not no_install)
    if output.is_document:
        output.show(record_of(example, done.pods, done.links))
        return
    echo(f"\n{done.words(output)}")
    if done.steps:
        echo(f"\n{steps_words([export_step(cluster), *done.steps])}")
    if done.ending:
        echo(f"\n{done.ending}")


def example_named(example: str) -> Path:
    """The manifests of this example. Raises ClickException."""
    known = known_examples()
    if example not in known:
        raise click.ClickException(
            f'There is no example "{example}"; there are {", ".join(known)}.'
        )
    return known[example]


@dataclass(frozen=True, slots=True)
class Done:
    """An example that was run."""

    name: str
    pods: list["Obj"]
    links: list[str]  # of its services
    steps: tuple[Step, ...]  # what to type next, once KUBECONFIG names the cluster
    ending: str  # what to do after them
    has_notebook: bool
    replaced: str = ""  # what was there before under the same name

    def words(self, output: Output) -> str:
        shown = f"examples/{self.name}.yaml:\n\n{_shown(self.pods, output)}"
        if not self.replaced:
            return shown
        return (
            f"{shown}\n\n{self.replaced} was there before, made otherwise: its pods were replaced."
        )


def run_example(path: Path, cluster: ClusterDirectory, *, installs: bool) -> Done:
    """Runs it in a cluster that runs. `installs`: JupyterLab, if it is a notebook."""
    import yaml

    from gpupool.cli.example_run import links_of, run
    from gpupool.cli.notebook import how_to_open, install_jupyter, notebooks, old_words

    manifests = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    found = notebooks(manifests)
    is_new = bool(found) and installs and install_jupyter()
    kubeconfig = str(cluster.kubeconfig)
    with progress(f"Running examples/{path.name}") as told:
        pods, has_replaced = ask_cluster(
            lambda kube: run(kube, manifests, told, start_again=is_new),
            doing="",
            kubeconfig=kubeconfig,
        )
    links = ask_cluster(lambda kube: links_of(kube, manifests), kubeconfig=kubeconfig)
    if waiting := waiting_pods(pods):
        old = [words for notebook in found for words in old_words(notebook, pods)]
        steps = waiting_steps(waiting[0][0])
        return Done(path.stem, pods, links, steps, "\n".join(old), bool(found))
    openings = [how_to_open(notebook, links) for notebook in found]
    steps = tuple(step for opening in openings for step in opening.before)
    words = [opening.words for opening in openings]
    if sys.stdout.isatty():
        words += [from_elsewhere(opening.link, os.environ) for opening in openings]
    ending = "\n\n".join(filter(None, words))
    replaced = _workloads(manifests) if has_replaced else ""
    return Done(path.stem, pods, links, steps, ending, bool(found), replaced)


def _workloads(manifests: list["Obj"]) -> str:
    made = [each for each in manifests if "template" in (each.get("spec") or {})]
    return ", ".join(f"{each['kind']} {each['metadata']['name']}" for each in made)


def _list(known: dict[str, Path]) -> "Table[tuple[str, str]]":
    from gpupool.cli.output.table import Column, Shorten, Table

    columns = (
        Column[tuple[str, str]]("EXAMPLE", lambda row: row[0]),
        Column[tuple[str, str]]("WHAT IT SHOWS", lambda row: row[1], shorten=Shorten.END),
    )
    rows = [(stem, _first_line(path)) for stem, path in known.items()]
    fields = ("name", "description")
    return Table(
        "Example", columns, rows, lambda row: dict(zip(fields, row, strict=True)), lambda r: r[0]
    )


def _shown(pods: list["Obj"], output: Output) -> str:
    """The cards of the pods, and why others wait; indented."""
    import textwrap

    from gpupool.cli.card_tables import shares_table
    from gpupool.cli.output.layout import layout_of_output
    from gpupool.cli.output.pages import Line, Prose
    from gpupool.cli.output.table import Tone

    held = shares_table(pods, with_namespace=False)
    layout = layout_of_output(wide=output.format == "wide", headers=output.headers, indent=2)
    cards = "\n".join(held.lines(layout)) if held.rows else ""
    lines = [
        Line(f"{name} waits: {why}", Tone.CAUTION, toned=len(f"{name} waits:"), indent=2)
        for name, why in waiting_pods(pods)
    ]
    waits = "\n".join(Prose("", lines).lines(layout))
    shown = "\n\n".join(filter(None, (cards, waits)))
    return textwrap.indent(shown or "Its pods have no cards.", "  ")


def record_of(example: str, pods: list["Obj"], links: list[str]) -> "Record":
    from gpupool.cli.card_tables import shares_table
    from gpupool.cli.output.pages import Record

    fields = {
        "name": example,
        "shares": shares_table(pods, with_namespace=True).document()["items"],
        "waiting": [{"pod": name, "message": why} for name, why in waiting_pods(pods)],
        "links": links,
    }
    return Record("ExampleRun", (), fields)


def waiting_steps(pod: str) -> tuple[Step, ...]:
    """What to do about a pod that waits."""
    gpupool = own_command()
    return (
        Step(f"{gpupool} gpu pods", "who has the cards"),
        Step(f"{gpupool} explain {pod}", "why it waits"),
    )


def waiting_pods(pods: list["Obj"]) -> list[tuple[str, str]]:
    """Those that wait for a node, and why."""
    from gpupool.cli.example_run import waiting

    return waiting(pods)


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
