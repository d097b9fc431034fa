"""`gpupool doctor`: says what is wrong with an installation, and how to repair it."""

import sys

import click

from gpupool.cli.exit_codes import ERROR
from gpupool.cli.known_names import namespaces
from gpupool.cli.options import access_options
from gpupool.cli.programs import ask_cluster

_MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}


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
def command(kubeconfig: str, context: str, namespace: str) -> None:
    """Check an installation, and say what is wrong and how to repair it.

    Changes nothing. The exit code is 1 when something is wrong.

    \b
    Examples:
      gpupool doctor
      gpupool doctor --context production -n gpupool
    """
    import datetime

    from gpupool.doctor.checks import judge
    from gpupool.doctor.evidence import Level
    from gpupool.doctor.look import look

    now = datetime.datetime.now(datetime.UTC)
    evidence = ask_cluster(
        lambda kube: look(kube, namespace, now),
        doing="Looking at the installation",
        kubeconfig=kubeconfig,
        context=context,
    )
    found = judge(evidence)
    for finding in found:
        click.echo(f"{_MARKS[finding.level]}  {finding.about}: {finding.what}")
        if finding.mend:
            click.echo(f"       -> {finding.mend}")
    if any(finding.level is Level.WRONG for finding in found):
        sys.exit(ERROR)
