"""What the plugins of kubectl run, and what they complete. `plugins.py` installs them.

    python -m gpupool.cli.kubectl_plugin run "inspect gpushare" -d
    python -m gpupool.cli.kubectl_plugin complete "inspect gpushare" cn-sh

kubectl takes no options before the name of a plugin, so cluster and namespace are those of the
kubeconfig, or of options after the name.
"""

import sys

import click
from click.shell_completion import ShellComplete

from gpupool.cli.main import CONTEXT, Explained, gpupool

# What one types after `kubectl`.
ALL = "gpupool"
INSPECT = ("inspect gpushare", "inspect cgpu")
# cobra's: ask the shell for files, or not.
_FILES, _NO_FILES = ":0", ":4"


def command_of(plugin: str) -> click.Command:
    if plugin not in INSPECT:
        return gpupool
    from gpupool.cli.inspect import command

    return Explained(
        plugin,
        params=command.params,
        callback=command.callback,
        help=(command.help or "").replace("gpupool inspect", f"kubectl {plugin}"),
        context_settings=CONTEXT,
    )


def completions(plugin: str, arguments: list[str]) -> list[str]:
    """As kubectl wants them: a line for each, then what else the shell may offer."""
    *before, incomplete = arguments or [""]
    asked = ShellComplete(command_of(plugin), {}, f"kubectl {plugin}", "")
    found = asked.get_completions(before, incomplete)
    lines = [f"{item.value}\t{item.help or ''}".rstrip() for item in found if item.type == "plain"]
    return [*lines, _NO_FILES if len(lines) == len(found) else _FILES]


def main() -> None:
    what, plugin, *arguments = sys.argv[1:]
    if what == "complete":
        click.echo("\n".join(completions(plugin, arguments)))
    else:
        command_of(plugin)(arguments, prog_name=f"kubectl {plugin}")


if __name__ == "__main__":
    main()
