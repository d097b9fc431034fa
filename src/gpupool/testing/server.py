"""The server process of a test: starts it, waits until it is ready, and makes sure that it ends.

It is the command `gpupool up --foreground`, which reports its progress as JSON lines.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

START_LIMIT_S = 60
STOP_LIMIT_S = 20
_LOG_LINES = 20


class ClusterFailed(Exception):
    """The cluster did not start; the reason and the end of its log are in the text."""


@dataclass(frozen=True, slots=True)
class Server:
    process: subprocess.Popen[bytes]
    # Our end of a pipe. The server ends when it is closed, which also happens when we are killed.
    hold: int
    port: int

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        _end(self.process, self.hold)


def start_server(home: Path, log: Path, arguments: Iterable[str]) -> Server:
    """Runs `gpupool up --foreground` with these arguments, and waits until it is ready."""
    reports, report_to = os.pipe()
    attached_to, hold = os.pipe()
    command = [sys.executable, "-m", "gpupool", "up", "--foreground", *arguments]
    command += ["--report-to", str(report_to), "--attached-to", str(attached_to)]
    with log.open("ab") as output, os.fdopen(reports, "rb") as lines:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(report_to, attached_to),
            env=os.environ | {"GPUPOOL_HOME": str(home)},
            # Ctrl-C goes to the test only, which then stops the cluster in order.
            start_new_session=True,
        )
        # Our copies: while they are open, the stream does not end when the server does.
        os.close(report_to)
        os.close(attached_to)
        # Killing the server closes its end of the pipe, which ends the loop over its reports.
        limit = Timer(START_LIMIT_S, process.kill)
        limit.start()
        try:
            return Server(process, hold, _ready_port(lines))
        except BaseException as error:
            process.kill()
            _end(process, hold)
            if isinstance(error, ClusterFailed):
                error.add_note(_tail(log))
            raise
        finally:
            limit.cancel()


def _ready_port(lines: Iterable[bytes]) -> int:
    for line in lines:
        match json.loads(line):
            case {"ready": int(port)}:
                return port
            case {"failed": str(text)}:
                raise ClusterFailed(text)
            case _:  # a step on the way
                continue
    raise ClusterFailed("The server ended, or was not ready in time.")


def _end(process: subprocess.Popen[bytes], hold: int) -> None:
    os.close(hold)
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(["The end of its log:", *lines[-_LOG_LINES:]])
