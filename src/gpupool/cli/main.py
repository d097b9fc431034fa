"""The command `gpupool`. Each command is a module, loaded when it is asked for: help is quick."""

import importlib

import click

# In the order of `gpupool --help`; the words are here so that help imports no command.
COMMANDS = {
    "up": "Start a local cluster.",
    "down": "Stop a cluster; its data stays.",
    "status": "Show whether a cluster runs, and where.",
    "clusters": "List the clusters of this machine.",
    "kubeconfig": "Print the kubeconfig of a cluster.",
    "reset": "Stop a cluster and delete its data.",
    "quota": "Show or change the quotas of the platform.",
    "version": "Print the version.",
}


class _Commands(click.Group):
    """Finds command `x` in the module gpupool.cli.x, as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gpupool.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def gpupool() -> None:
    """Schedules and shares NVIDIA GPUs on Kubernetes.

    `gpupool up` starts a whole local cluster, which kubectl drives: no root, no GPU, no Docker.
    """


def main() -> None:
    gpupool(prog_name="gpupool")
