"""`gpupool doctor`: says what is wrong with an installation, and how to repair it."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from gpupool.cli.exit_codes import ERROR
from gpupool.cli.known_names import namespaces
from gpupool.cli.options import access_options
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.output.pages import Line, Prose
from gpupool.cli.output.table import Tone
from gpupool.cli.programs import ask_cluster

if TYPE_CHECKING:
    from gpupool.doctor.evidence import Finding
    from kubeclient.client import Kube

_CANARY_S = 120.0  # until a pod has said what it sees; it may have to pull its image
_MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}
_TONES = {"ok": Tone.GOOD, "note": Tone.CAUTION, "wrong": Tone.BAD}


@click.command("doctor")
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
    "--canary",
    is_flag=True,
    help="Also start a small pod on each kind of node, and compare what it sees with what it got.",
)
@click.option(
    "--canary-namespace",
    default="default",
    show_default=True,
    shell_complete=namespaces,
    help="Namespace of these pods.",
)
@click.option(
    "--canary-image",
    default="",
    metavar="IMAGE",
    help="Image of these pods, with a shell.  [default: that of the agents]",
)
@output_options("json", "yaml", headers=False)
def command(
    namespace: str,
    canary: bool,
    canary_namespace: str,
    canary_image: str,
    output: Output,
    **where: str,
) -> None:
    """Check an installation, and say what is wrong and how to repair it.

    Changes nothing; with --canary, it starts pods and deletes them again, also after Ctrl-C. The
    exit code is 1 when something is wrong.

    \b
    Examples:
      gpupool doctor
      gpupool doctor --context production -n gpupool
      gpupool doctor --canary
    """
    import datetime

    from gpupool.cli import namespaced
    from gpupool.doctor.canary_run import agents_image, fly
    from gpupool.doctor.checks import judge
    from gpupool.doctor.evidence import Level
    from gpupool.doctor.look import look

    now = datetime.datetime.now(datetime.UTC)

    async def looked(kube: "Kube") -> "list[Finding]":
        evidence = await look(kube, namespace, now)
        await namespaced.check(kube, namespace)
        found = judge(evidence)
        if canary:
            await namespaced.check(kube, canary_namespace)
            image = canary_image or agents_image(evidence.agents)
            found += await fly(
                kube, evidence.nodes, namespace=canary_namespace, image=image, within_s=_CANARY_S
            )
        return found

    found = ask_cluster(looked, doing="Looking at the installation", **where)
    output.show(page_of(found))
    if any(finding.level is Level.WRONG for finding in found):
        sys.exit(ERROR)


def page_of(found: "Sequence[Finding]") -> Prose:
    items = [
        {
            "level": str(finding.level),
            "subject": finding.about,
            "message": finding.what,
            "remedy": finding.mend,
        }
        for finding in found
    ]
    return Prose("FindingList", list(_lines(found)), {"items": items})


def _lines(found: "Sequence[Finding]") -> Iterator[Line]:
    for finding in found:
        mark = _MARKS[finding.level]
        text = f"{mark}  {finding.about}: {finding.what}"
        yield Line(text, _TONES[finding.level], toned=len(mark), indent=len(mark) + 2)
        if finding.mend:
            yield Line(f"       -> {finding.mend}", indent=10)
