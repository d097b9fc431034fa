"""Containers that are tasks of this process: programs of ours, for whom a process would be too
much where there are hundreds of nodes. Which images they are, the settings say.

To the runtime they are like processes: they start, say something, can be ended, and end. What they
log goes to the container's log, and nowhere else: `log_to_containers`.
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
class Surroundings:
    """What a hosted program is told."""

    node: str
    arguments: tuple[str, ...]  # command and args of the container
    env: Mapping[str, str]
    mounts: Mapping[str, Path]  # mount path -> where that is; with room for a socket's name


# Runs until it is cancelled, or returns an exit code.
Program: TypeAlias = Callable[[Surroundings], Awaitable[int]]


class HostedPrograms:
    def __init__(self) -> None:
        self.exited: Callable[[str, int], None] = lambda run_id, code: None
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, run_id: str, program: Program, around: Surroundings, output: Output) -> None:
        context = copy_context()
        context.run(_OUTPUT.set, output)
        work = self._run(run_id, program, around, output)
        self._running[run_id] = asyncio.get_running_loop().create_task(
            work, name="hosted-container", context=context
        )

    def end(self, run_id: str) -> bool:
        """False when it is none of ours."""
        task = self._running.get(run_id)
        if task is not None:
            task.cancel()
        return task is not None

    async def close(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(
        self, run_id: str, program: Program, around: Surroundings, output: Output
    ) -> None:
        code = _TERMINATED
        try:
            code = await program(around)
        except Exception:  # noqa: BLE001  # as a process that ends with a traceback
            code = 1
            output.say(STDERR, traceback.format_exc())
        finally:
            del self._running[run_id]
            self.exited(run_id, code)


class _ContainerLog(logging.Handler):
    """To the log of the container that the record comes from; from elsewhere, to the server's."""

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
    """What is logged there, or below, by a hosted program goes to its container's log."""
    found = logging.getLogger(logger)
    if not any(isinstance(handler, _ContainerLog) for handler in found.handlers):
        found.addHandler(_ContainerLog())
        found.propagate = False
