"""`gpupool up`: starts a local cluster in the background, and says how to use it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpupool.cli.known_names import clusters, examples
from gpupool.cli.numbers import Whole
from gpupool.cli.output.options import echo
from gpupool.cli.progress import Progress, progress
from gpupool.cli.up_view import (
    next_words,
    notebook_for,
    places_words,
    pools_words,
    started_words,
)
from gpupool.local.home import ClusterDirectory, Home, home, start_command

if TYPE_CHECKING:
    from gpupool.local.cluster_setup import Wish
    from gpupool.local.pool_readiness import Pools
    from gpupool.local.reports import Listener

    Finish = Callable[[ClusterDirectory, int, Pools | None], None]

_STALL_S = 10.0  # nodes are waited for as long as more of them come or get ready meanwhile
_LIMIT_S = 60.0  # but not longer: the cluster can be used without them


@click.command("up")
@click.option(
    "--name",
    shell_complete=clusters,
    help="Name of the cluster; several can run at a time.  [default: default]",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Cluster file (YAML): node pools, machines, networks.  [default: the file used "
    "last, or the built-in example cluster]",
)
@click.option(
    "--port",
    type=Whole(0, 65535),
    metavar="PORT",
    help="Port of the API server; 0 takes any free port.  [default: the port used last]",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the data of a new cluster.",
)
@click.option(
    "--gpus",
    type=click.Choice(["simulated", "real"]),
    help="The cards of GPU nodes: simulated ones, or this machine's own on the first GPU node.  "
    "[default: the last choice, or simulated]",
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "required"]),
    help="The wall around containers. required: do not start where this machine allows none; auto: "
    "warn.  [default: the last choice, or auto]",
)
@click.option(
    "--example",
    shell_complete=examples,
    metavar="NAME",
    help="Also run this example, as gpupool example does.",
)
@click.option("--foreground", is_flag=True, help="Stay in this terminal until Ctrl-C.")
@click.option(
    "--merge-kubeconfig", is_flag=True, help="Also add the cluster to your own kubeconfig."
)
@click.option("--report-to", type=int, hidden=True)
@click.option("--lock", type=int, hidden=True)
@click.option("--attached-to", type=int, hidden=True)
@click.option("--delete-home-unless", type=click.Path(path_type=Path), hidden=True)
def command(
    foreground: bool,
    report_to: int | None,
    lock: int | None,
    attached_to: int | None,
    delete_home_unless: Path | None,
    **wish: Any,
) -> None:
    """Start a local cluster.

    It is ready in two or three seconds, and keeps running when the terminal is closed. `gpupool
    down` stops it; the next `gpupool up` starts it again with all its objects.

    \b
    Examples:
      gpupool up
      gpupool up --name training --config training.yaml
      gpupool up --example notebook-service
      gpupool up --gpus real --sandbox required
    """
    from gpupool.local.cluster_setup import Wish
    from gpupool.local.launch import START_LIMIT_S, StartFailed

    place, example = home(), wish.pop("example")
    _check_example(example, foreground)
    # The command that started this one has looked, and warns.
    warning = _look(wish["gpus"]) if report_to is None else ""
    asked = Wish(**wish)

    def finish(cluster: ClusterDirectory, port: int, pools: "Pools | None") -> None:
        echo(places_words(cluster, port) + pools_words(pools))
        if not foreground:  # in the foreground this process is the server, and cannot ask itself
            _show_troubles(cluster)
        click.echo(warning, err=True, nl=bool(warning))
        context = _merged(cluster, port) if asked.merge_kubeconfig else ""
        _show_next(cluster, context, example, notebook_for(pools))

    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if foreground:
            found = _stay(place, asked, lock, report_to, attached_to, finish)
        else:
            found = _start(place, asked, finish)
        if isinstance(found, int):
            if delete_home_unless and found == 0:
                # Not after a failure: the log is in the home, and the test shows its end.
                _delete(place, unless=delete_home_unless)
            sys.exit(found)
        if port := _joined(found, deadline):
            later = wish["config"] or wish["gpus"] or wish["sandbox"]
            if later or wish["port"] not in (None, 0, port):
                flags = "--config, --gpus, --port and --sandbox"
                click.echo(f"{flags} take effect after: gpupool down", err=True)
            with progress(f'Waiting for the nodes of cluster "{found.name}"') as shown:
                pools = _nodes(found, port, shown)
            finish(found, _port_now(found), pools)
            return
        # The server that had the cluster has ended: now it is our turn.
    raise StartFailed("Another command starts or stops the cluster, and did not get done.")


def _check_example(example: str | None, foreground: bool) -> None:
    """Before anything is started."""
    if example is None:
        return
    from gpupool.cli.example import example_named

    example_named(example)
    if foreground:
        raise click.UsageError("--example is for a cluster in the background.")


def _show_next(cluster: ClusterDirectory, context: str, example: str | None, notebook: str) -> None:
    """Runs the example, if there is one, and says what to do next."""
    if example is None:
        click.echo(next_words(cluster, context, notebook=notebook))
        return
    from gpupool.cli.example import example_named, run_example
    from gpupool.cli.output.options import Output

    done = run_example(example_named(example), cluster, installs=True)
    echo(f"\n{done.words(Output())}")
    notebook = "" if done.has_notebook else notebook
    click.echo(next_words(cluster, context, more=done.steps, notebook=notebook))
    if done.ending:
        click.echo(f"\n{done.ending}")


def _look(gpus: str | None) -> str:
    """Refuses cards that this machine does not have. Returns what people must know of it."""
    from gpupool.local.wall import warning

    if gpus == "real":
        from gpupool.local.real_gpus import require_real_cards

        require_real_cards()
    return warning()


def _start(place: Home, wish: "Wish", finish: "Finish") -> int | ClusterDirectory:
    """Starts the cluster in the background. The cluster itself if it has a server already."""
    from gpupool.local.cluster_setup import Running, claimed
    from gpupool.local.disk_space import check_space
    from gpupool.local.launch import ended_unless_ready, server_command, spawn, wait_started

    began = time.monotonic()
    check_space(wish.data_dir or place.root)
    with claimed(place, wish, for_child=True) as found:
        if isinstance(found, Running):
            return found.cluster
        cluster, lock = found.prepared.cluster, found.lock
        spawned = spawn(
            place,
            cluster,
            lambda report_to: server_command(
                cluster,
                port=wish.port,
                gpus=wish.gpus,
                sandbox=wish.sandbox,
                report_to=report_to,
                lock=lock.descriptor,
            ),
            lock=lock,
        )
    title = f'Starting cluster "{cluster.name}"'
    with ended_unless_ready(spawned), progress(title, at_once=True) as shown:
        port = wait_started(spawned, on_step=shown.say)
        pools = _nodes(cluster, port, shown)
    port = _port_now(cluster)
    click.echo(started_words(cluster.name, time.monotonic() - began, pools))
    finish(cluster, port, pools)
    return 0


def _joined(cluster: ClusterDirectory, deadline: float) -> int:
    """The port of a cluster that runs already, or that another command is starting; 0 if it has
    ended meanwhile."""
    from gpupool.local.server_process import wait_ready

    with progress(f'Waiting for cluster "{cluster.name}", which starts or stops'):
        server = wait_ready(cluster, patience_s=deadline - time.monotonic())
    if server is None:
        return 0
    click.echo(f'Cluster "{cluster.name}" is already running.')
    return server.port


def _nodes(cluster: ClusterDirectory, port: int, shown: Progress) -> "Pools | None":
    """The pools when their nodes are ready, or get no further. None when the server does not
    answer: that is no reason to call the start a failure."""
    from gpupool.local.pool_readiness import Pools, pools_as_they_come

    def tell(pools: Pools, there: int) -> None:
        shown.say(f"{there} of {pools.wanted} nodes are there, {pools.ready} are ready")

    return pools_as_they_come(cluster.path, port, stall_s=_STALL_S, limit_s=_LIMIT_S, tell=tell)


def _port_now(cluster: ClusterDirectory) -> int:
    """Of a server that still runs: this command may have been stopped for long (Ctrl-Z)."""
    from gpupool.local.launch import StartFailed
    from gpupool.local.server_process import running_server

    server = running_server(cluster)
    if server and server.port:
        return server.port
    end = "stopped" if cluster.path.exists() else "deleted"
    raise StartFailed(
        f'Cluster "{cluster.name}" was {end} while this command waited for its nodes. '
        f"Start it again: {start_command(cluster.name)}"
    )


def _show_troubles(cluster: ClusterDirectory) -> None:
    """A cluster is ready without a program that keeps failing: then people must know."""
    from gpupool.local.server_process import running_server
    from gpupool.local.server_state import state_of

    _, troubles = state_of(cluster, running_server(cluster))
    for trouble in troubles:
        click.echo(f"Trouble: {trouble}", err=True)


def _merged(cluster: ClusterDirectory, port: int) -> str:
    """Adds the cluster to the user's own kubeconfig; returns the name of its context."""
    from gpupool.local.merging import context_name, merge

    click.echo(f"  merged into  {merge(cluster, port)}")
    return context_name(cluster)


def _stay(
    place: Home,
    wish: "Wish",
    lock: int | None,
    report_to: int | None,
    attached_to: int | None,
    finish: "Finish",
) -> int | ClusterDirectory:
    """Is the server; returns the exit code. The cluster itself if it has a server already."""
    from gpupool.local.cluster_setup import Running, claimed
    from gpupool.local.reports import Step, write_to

    with claimed(place, wish, inherited=lock) as found:
        if isinstance(found, Running):
            return found.cluster
    prepared = found.prepared
    tell = write_to(report_to) if report_to is not None else _say(prepared.cluster, finish)
    tell(Step("loading the server"))

    from gpupool.cli.programs import log_to_stderr
    from gpupool.local.serve import serve_as_process
    from gpupool.local.server_log import ServerLog

    # In the background this is the cluster's log file (`launch.py`).
    log_to_stderr(ServerLog(prepared.cluster.log_file))
    return serve_as_process(prepared, tell, attached_to, found.lock)


def _delete(place: Home, *, unless: Path) -> None:
    """Deletes a home that was made for a test, when its server ends.

    The server does it, because the test may have been killed. A test that wants to start the server
    again creates the file `unless` before it stops the server (gpupool.testing).
    """
    import shutil

    if not unless.exists():
        shutil.rmtree(place.root, ignore_errors=True)


def _say(cluster: ClusterDirectory, finish: "Finish") -> "Listener":
    """Shows the server's reports in the terminal, when it runs in the foreground."""
    from gpupool.local.reports import Failed, Ready, Report

    def say(report: Report) -> None:
        match report:
            case Ready(port):
                click.echo(f'Cluster "{cluster.name}" is ready; Ctrl-C stops it.')
                finish(cluster, port, None)
                click.echo()
            case Failed(text):
                click.echo(f"Error: {text}", err=True)
            case _:
                pass

    return say
