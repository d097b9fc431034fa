"""Starts a server in the background, and waits until it is ready.

The server writes reports (reports.py) to a pipe. The pipe also tells of a crash: when the server
ends without a report, the kernel closes its end and we read the end of the stream. For this we must
close our own copy of the writing end. After "ready" nobody reads the pipe any more; the server
closes it.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import click

from gpupool.local.home import ClusterDirectory, Home
from gpupool.local.reports import Failed, Ready, Step, read_lines
from gpupool.local.server_log import LIMIT, older
from localkube.data_directory import Lock

START_LIMIT_S = 60
_LOG_LINES = 15


class StartFailed(click.ClickException):
    """The server refused to start, crashed, or was not ready in time."""


def server_command(
    cluster: ClusterDirectory,
    *,
    port: int | None,
    gpus: str | None,
    sandbox: str | None = None,
    report_to: int,
    lock: int,
) -> list[str]:
    """The command line of the server process: the same Python, the same package. `lock`: the
    descriptor of the cluster's lock, which it takes over."""
    command = [sys.executable, "-m", "gpupool", "up", "--foreground", "--name", cluster.name]
    if port is not None:
        command += ["--port", str(port)]
    if gpus is not None:
        command += ["--gpus", gpus]
    if sandbox is not None:
        command += ["--sandbox", sandbox]
    return [*command, "--report-to", str(report_to), "--lock", str(lock)]


@dataclass(frozen=True, slots=True)
class Spawned:
    """A server process that has not reported yet."""

    cluster: ClusterDirectory
    process: subprocess.Popen[bytes]
    reports: BinaryIO
    log_start: int  # after a crash only the log of this start is shown, not that of earlier ones


def spawn(
    home: Home,
    cluster: ClusterDirectory,
    command: Callable[[int], Sequence[str]],
    *,
    lock: Lock | None = None,
) -> Spawned:
    """Starts `command(descriptor to report to)`, and gives it the lock."""
    _rotate(cluster.log_file)
    receive, send = os.pipe()
    reports = os.fdopen(receive, "rb", buffering=0)
    try:
        with os.fdopen(send, "wb", buffering=0), _private_log(cluster.log_file) as log:
            log_start = log.tell()
            process = subprocess.Popen(
                command(send),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(send,) if lock is None else (send, lock.descriptor),
                start_new_session=True,  # Ctrl-C and closing the terminal do not end it
                cwd=cluster.path,
                env=os.environ | {"GPUPOOL_HOME": str(home.root)},
            )
            if lock is not None:
                lock.hand_over(process.pid)
            return Spawned(cluster, process, reports, log_start)
    except BaseException:
        reports.close()
        raise


def launch(
    home: Home,
    cluster: ClusterDirectory,
    command: Callable[[int], Sequence[str]],
    *,
    on_step: Callable[[str], None],
) -> int:
    """Starts `command(descriptor to report to)`, waits until it is ready, returns its port."""
    return wait_started(spawn(home, cluster, command), on_step=on_step)


@contextmanager
def ended_unless_ready(spawned: Spawned) -> Iterator[None]:
    """Ends the server when the block fails, also by Ctrl-C: a server that nobody waits for must
    not go on starting."""
    try:
        yield
    except BaseException:
        if spawned.process.returncode is None:
            _end(spawned.process)
        raise


def wait_started(spawned: Spawned, *, on_step: Callable[[str], None]) -> int:
    """Waits until the server is ready, returns its port. Raises StartFailed."""
    cluster, server = spawned.cluster, spawned.process
    with spawned.reports as reports, ended_unless_ready(spawned):
        for report in read_lines(_chunks(reports.fileno(), START_LIMIT_S)):
            match report:
                case Step(text):
                    on_step(text)
                case Ready(port):
                    # The server outlives this process. With a return code set, Popen does not
                    # warn about a child that still runs.
                    server.returncode = 0
                    return port
                case Failed(text):
                    raise StartFailed(f"{text}\nThe log: {cluster.log_file}")
    code = server.wait()
    if code in (0, -signal.SIGTERM):  # by `gpupool down`
        raise StartFailed(f'Cluster "{cluster.name}" was stopped while it was starting.')
    raise StartFailed(
        f'Cluster "{cluster.name}" ended while it was starting (exit code {code}). '
        f"The end of {cluster.log_file}:\n{_tail(cluster.log_file, spawned.log_start)}"
    )


def _chunks(descriptor: int, limit_s: float) -> Iterator[bytes]:
    # One deadline for the whole start: reports of progress do not extend it.
    deadline = time.monotonic() + limit_s
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise StartFailed(f"The server was not ready after {limit_s:.0f} s; it was stopped.")
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return
        yield chunk


def _end(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _private_log(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _rotate(path: Path) -> None:
    # Only before a start: later the server does it itself.
    if path.exists() and path.stat().st_size > LIMIT:
        path.replace(older(path))


def _tail(path: Path, start: int) -> str:
    with path.open("rb") as log:
        log.seek(start)
        lines = log.read()[-20_000:].decode(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-_LOG_LINES:]) or "  (nothing)"
