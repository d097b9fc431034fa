"""What to type next: the lines with which commands end. Pure, but for where `gpupool` is."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpupool.local.home import ClusterDirectory

_WIDTH = 80  # a terminal has at least so many columns


class Step(NamedTuple):
    command: str
    what: str = ""  # it shows or does


def steps_words(steps: Sequence[Step]) -> str:
    """The steps below "Next:", each with its comment behind it, or above it where that is too
    long. A command stays one line, whatever its length: it is made to be copied."""
    width = max((len(step.command) for step in steps if step.what), default=0)
    lines = [
        f"  {step.command.ljust(width)}   # {step.what}" if step.what else f"  {step.command}"
        for step in steps
    ]
    if any(len(line) > _WIDTH for line, step in zip(lines, steps, strict=True) if step.what):
        lines = [line for step in steps for line in _above(step)]
    return "\n".join(["Next:", *lines])


def _above(step: Step) -> list[str]:
    return [*([f"  # {step.what}"] if step.what else []), f"  {step.command}"]


def export_step(cluster: "ClusterDirectory") -> Step:
    """The line that lets kubectl and gpupool find the cluster."""
    path, home = str(cluster.kubeconfig), os.environ.get("HOME", "")
    command = f"export KUBECONFIG={shlex.quote(path)}"
    if len(command) + 2 > _WIDTH and home and path.startswith(f"{home}/"):
        below = path.removeprefix(home)
        if shlex.quote(below) == below:
            command = f'export KUBECONFIG="$HOME{below}"'
    return Step(command)


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
