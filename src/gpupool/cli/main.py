"""The command `gpupool`. Each command is a module, loaded only when it is run.

So `gpupool --help` loads little but click, and commands that run in production do not load
what only local clusters need.
"""

import errno
import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from gpupool import __version__
from gpupool.cli.exit_codes import INTERRUPTED, MEANINGS

GC_THRESHOLDS = (50_000, 20, 100)
CONTEXT = {"help_option_names": ["-h", "--help"]}
# In the order of `gpupool --help`. The texts are here so that help need not import the commands.
COMMANDS = {
    "up": "Start a local cluster.",
    "down": "Stop a cluster; its data stays.",
    "status": "Show whether a cluster runs, where, and what fails in it.",
    "clusters": "List the clusters of this machine.",
    "kubeconfig": "Print the kubeconfig of a cluster.",
    "reset": "Stop a cluster and delete its data.",
    "machines": "List, add and remove machines that exist without a cluster.",
    "quota": "Show or change the quotas of the platform.",
    "example": "Run one of the examples, and show which cards its pods get.",
    "open": "Print where a service answers, and open it in a browser.",
    "gpu": "List the cards of nodes, and take single cards out of use.",
    "top": "Show what nodes, cards or pods do now, live.",
    "report": "Report GPU-hours asked for, given and used, idle pods, and who needs less.",
    "idle": "List pods that hold cards and have not used them for some time.",
    "resize": "Give a running pod more or less of its card, without a restart.",
    "agent": "Find a node's GPUs, label the node, and offer them to its kubelet.",
    "explain": "Say where a pod is, where it would go, or why it waits.",
    "whatif": "Say where pods would go, how many more would fit, and what stops the next one.",
    "defrag": "Plan which pods to move so that a larger one fits; move them if told to.",
    "snapshot": "Write what decisions depend on to a file, without secrets.",
    "migrate": "Say what workloads of other GPU systems would become here, and whether they fit.",
    "inspect": "Show how much GPU memory is allocated, by node and card.",
    "scheduler": "Find nodes and cards for pods.",
    "extender": "Choose nodes and cards for kube-scheduler.",
    "admission": "Check GPU pods, and connect them to their allocation.",
    "history": "Keep a history of what cards were given and used.",
    "console": "Show the cluster and its GPUs in a browser, until stopped.",
    "doctor": "Check an installation, and say what is wrong and how to repair it.",
    "cleanup": "Remove what an installation leaves behind, once it is uninstalled.",
    "replay": "Replay a trace of pods against the engine that schedules real ones.",
    "plugins": "Install plugins of kubectl: kubectl gpupool and kubectl inspect.",
    "completion": "Print a script that completes commands, options and names.",
    "version": "Print the version.",
}


class Explained(click.Command):
    """A command that turns errors of the operating system, and Ctrl-C, into words."""

    def invoke(self, ctx: click.Context) -> Any:
        """Errors of the operating system (no space, no permission) are shown in one line."""
        try:
            with _explaining_missing_localkube():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of our output has ended: click handles that
                raise
            raise click.ClickException(_words(error)) from error


class _Commands(Explained, click.Group):
    """Finds command `x` in the module gpupool.cli.x, as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with _explaining_missing_localkube():
            module = importlib.import_module(f"gpupool.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            if not close:
                raise
            words = f"{error.message} Did you mean '{close[0]}'?"
            raise click.UsageError(words, ctx) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """click would load every command for its text."""
        names = [
            CompletionItem(name, help=words)
            for name, words in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), words) for code, words in MEANINGS.items()])


@contextmanager
def _explaining_missing_localkube() -> Iterator[None]:
    """`pip install gpupool` installs what runs in production, without local clusters."""
    try:
        yield
    except ModuleNotFoundError as error:
        # Any other missing module is a defect, and must be seen as such.
        if (error.name or "").partition(".")[0] != "localkube":
            raise
        raise click.ClickException(
            "Local clusters are not installed: pip install 'gpupool[local]'."
        ) from error


@click.group(cls=_Commands, context_settings=CONTEXT)
@click.version_option(__version__, message="gpupool %(version)s")
def gpupool() -> None:
    """Schedules and shares NVIDIA GPUs on Kubernetes.

    `gpupool up` starts a whole local cluster, which kubectl drives: no root, no GPU, no Docker.

    \b
    Examples:
      gpupool up
      gpupool example shared-gpus
      gpupool gpu list
      gpupool explain cgpu-test-0
    """


def _words(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOENT and where:
        return f"{where}wanted a path in a directory that exists, found: {error.strerror}."
    advice = " Free some, and try again." if error.errno == errno.ENOSPC else ""
    return f"{where}{error.strerror or error}.{advice}"


def main() -> None:
    if "_GPUPOOL_COMPLETE" in os.environ:  # the shell asks
        importlib.import_module("gpupool.cli.completion")
    # Most commands keep many objects of the cluster for long, and make many short-lived ones. With
    # Python's thresholds the garbage collector would look at the long-lived ones again and again.
    gc.set_threshold(*GC_THRESHOLDS)
    gpupool(prog_name="gpupool")
