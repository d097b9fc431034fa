"""Hosted programs: containers that are asyncio tasks of this process. The settings say for which
images. With hundreds of nodes, a process per node and program would take too much memory.

For the runtime they are like processes: they start, write output, can be ended, and exit. Their log
records go to the container's log, and nowhere else: `log_to_containers`.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from localkube.kubelet.container_log import STDERR
from localkube.kubelet.output import Output

_TERMINATED = 143  # as by SIGTERM
_OUTPUT: ContextVar[Output | None] = ContextVar("output", default=None)
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@dataclass(frozen=True, slots=True)
class ProgramContext:
    """What a hosted program gets of its container."""

    node: str
    arguments: tuple[str, ...]  # command and args of the container
    env: Mapping[str, str]
    mounts: Mapping[
        str, Path
    ]  # mount path -> path on this machine, short enough for a socket in it


# Runs until it is cancelled, or returns an exit code.
HostedProgram: TypeAlias = Callable[[ProgramContext], Awaitable[int]]


class HostedPrograms:
    def __init__(self) -> None:
        self.exited: Callable[[str, int], None] = lambda run_id, code: None
        self._running: dict[str, asyncio.Task[int]] = {}

    def start(
        self, run_id: str, program: HostedProgram, context: ProgramContext, output: Output
    ) -> None:
        variables = copy_context()
        variables.run(_OUTPUT.set, output)
        task = asyncio.get_running_loop().create_task(
            _code(program, context, output), name="hosted-container", context=variables
        )
        self._running[run_id] = task
        # Not in the task itself: one that is cancelled before its first step runs nothing.
        task.add_done_callback(lambda ended: self._ended(run_id, ended))

    def end(self, run_id: str) -> bool:
        """Cancels the program. False: there is no hosted program with this id."""
        task = self._running.get(run_id)
        if task is not None:
            task.cancel()
        return task is not None

    async def close(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, run_id: str, task: asyncio.Task[int]) -> None:
        del self._running[run_id]
        self.exited(run_id, _TERMINATED if task.cancelled() else task.result())


async def _code(program: HostedProgram, context: ProgramContext, output: Output) -> int:
    """Runs the program, and returns its exit code."""
    try:
        return await program(context)
    except SystemExit as error:  # its own end, not that of the process which hosts it
        return _exit_code(error, output)
    except Exception:  # noqa: BLE001  # like a process that ends with a traceback
        output.say(STDERR, traceback.format_exc())
        return 1


def _exit_code(error: SystemExit, output: Output) -> int:
    """As for any Python program."""
    if error.code is None or isinstance(error.code, int):
        return int(error.code or 0) & 0xFF
    output.say(STDERR, str(error.code))
    return 1


class _ContainerLog(logging.Handler):
    """Writes a record to the log of the container whose task logged it (a context variable tells),
    and all other records to the server's log."""

    def emit(self, record: logging.LogRecord) -> None:
        output = _OUTPUT.get()
        if output is None:
            logging.getLogger().handle(record)
            return
        line = self.format(record)
        output.loop.call_soon_threadsafe(_say, output, line)

    def format(self, record: logging.LogRecord) -> str:
        text = f"{record.levelname} {super().format(record)}"
        fields = [f"{key}={value}" for key, value in vars(record).items() if key not in _PLAIN]
        return " ".join((text, *fields))


def _say(output: Output, line: str) -> None:
    if not output.is_over:
        output.say(STDERR, line)


def log_to_containers(logger: str) -> None:
    """From now on, records of this logger, and of those below it, go to the container's log if a
    hosted program logs them."""
    found = logging.getLogger(logger)
    if not any(isinstance(handler, _ContainerLog) for handler in found.handlers):
        found.addHandler(_ContainerLog())
        found.propagate = False
