"""`gpupool status`: shows whether a cluster runs and answers, where, and what fails in it."""

import sys

import click

from gpupool.cli.exit_codes import DONE, NOT_RUNNING
from gpupool.cli.options import existing_name_option
from gpupool.cli.output.options import Output, output_options
from gpupool.cli.output.pages import Entry, Record
from gpupool.cli.output.table import Tone
from gpupool.local.home import ClusterDirectory, start_command
from gpupool.local.server_process import Server, running_server
from gpupool.local.server_state import ANSWERING, state_of

_TONES = {"Running": Tone.GOOD, "Stopped": Tone.FAINT, "NotAnswering": Tone.BAD}


@click.command("status")
@existing_name_option
@output_options("json", "yaml", headers=False)
def command(name: str, output: Output) -> None:
    """Show whether a cluster runs, where, and what fails in it.

    The exit code is 0 when it runs and answers, 3 when it does not. The state is Degraded when
    a program of the cluster fails; it is started again by itself.

    \b
    Examples:
      gpupool status
      gpupool status --name training
    """
    from gpupool.cli.which_cluster import chosen

    cluster = chosen(name)
    server = running_server(cluster)
    state, troubles = state_of(cluster, server)
    output.show(_record(cluster, server, state, troubles))
    sys.exit(DONE if state in ANSWERING else NOT_RUNNING)


def _record(
    cluster: ClusterDirectory, server: Server | None, state: str, troubles: list[str]
) -> Record:
    address = f"https://127.0.0.1:{server.port}" if server and server.port else ""
    entries = [
        Entry("Name", cluster.name),
        Entry("State", state, _TONES.get(state, Tone.CAUTION)),
        *([] if server else [Entry("Start it", start_command(cluster.name))]),
        *(Entry("Trouble", trouble, Tone.BAD) for trouble in troubles),
        *([Entry("API server", address)] if address else []),
        *([Entry("Process", str(server.pid))] if server else []),
        Entry("Kubeconfig", str(cluster.kubeconfig), link=cluster.kubeconfig.as_uri()),
        Entry("Data", str(cluster.path), link=cluster.path.as_uri()),
        Entry("Log", str(cluster.log_file), link=cluster.log_file.as_uri()),
    ]
    fields = {
        "name": cluster.name,
        "state": state,
        "troubles": troubles,
        "apiServer": address or None,
        "processId": server.pid if server else None,
        "kubeconfig": str(cluster.kubeconfig),
        "data": str(cluster.path),
        "log": str(cluster.log_file),
    }
    return Record("ClusterStatus", entries, fields)
