"""Hosted programs: containers that are asyncio tasks of this process. The settings say for which
images. With hundreds of nodes, a process per node and program would take too much memory.

For the runtime they are like processes: they start, write output, can be ended, and exit. Their log
records go to the container's log, and nowhere else: `log_to_containers`.
"""

import asyncio
import errno
import logging
import os
import socket
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from kubeclient.objects import Obj
from localkube.kubelet.container_log import STDERR
from localkube.kubelet.output import Output

_BACKLOG = 64  # connections that a program has not accepted yet
_TERMINATED = 143  # as by SIGTERM
_OUTPUT: ContextVar[Output | None] = ContextVar("output", default=None)
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Listener:
    """A port of a hosted program."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[socket.socket] = asyncio.Queue(_BACKLOG)

    async def accept(self) -> socket.socket:
        """The next connection; it is the caller's to close."""
        return await self._waiting.get()

    def connect(self) -> socket.socket:
        """The other end of a new connection. Raises ConnectionRefusedError."""
        ours, theirs = socket.socketpair()
        try:
            self._waiting.put_nowait(theirs)
        except asyncio.QueueFull:
            ours.close()
            theirs.close()
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused") from None
        return ours

    def close(self) -> None:
        while not self._waiting.empty():
            self._waiting.get_nowait().close()


class Ports:
    """The ports on which a hosted program listens. Hundreds of them share the machine, so they
    have no ports of it: a connection is a pair of sockets."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}

    def listen(self, port: int) -> Listener:
        return self._listeners.setdefault(port, Listener())

    def connect(self, port: int) -> socket.socket | None:
        """None: the program does not listen on it. Raises ConnectionRefusedError."""
        listener = self._listeners.get(port)
        return None if listener is None else listener.connect()

    def close(self) -> None:
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()


@dataclass(frozen=True, slots=True)
class ProgramContext:
    """What a hosted program gets of its container."""

    node: str
    arguments: tuple[str, ...]  # command and args of the container
    env: Mapping[str, str]
    mounts: Mapping[
        str, Path
    ]  # mount path -> path on this machine, short enough for a socket in it
    ports: Ports = field(default_factory=Ports)  # where it can be reached by port-forward


# Runs until it is cancelled, or returns an exit code.
HostedProgram: TypeAlias = Callable[[ProgramContext], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Hosted:
    """The program of an image, and whose it is. It runs in this process, behind no wall, and with
    rights of its own: pods of anybody else that name its image must not start it."""

    run: HostedProgram
    namespace: str
    service_account: str = "default"

    def belongs_to(self, pod: Obj) -> bool:
        account = pod["spec"].get("serviceAccountName") or "default"
        return (pod["metadata"]["namespace"], account) == (self.namespace, self.service_account)


class HostedPrograms:
    def __init__(self) -> None:
        self.exited: Callable[[str, int], None] = lambda run_id, code: None
        self._running: dict[str, asyncio.Task[int]] = {}
        self._ports: dict[str, Ports] = {}
        self._held: dict[str, Sequence[int]] = {}

    def start(
        self,
        run_id: str,
        program: HostedProgram,
        context: ProgramContext,
        output: Output,
        held: Sequence[int] = (),
    ) -> None:
        """`held`: descriptors that its mounts lead through, closed after its end."""
        variables = copy_context()
        variables.run(_OUTPUT.set, output)
        task = asyncio.get_running_loop().create_task(
            _code(program, context, output), name="hosted-container", context=variables
        )
        self._running[run_id] = task
        self._ports[run_id] = context.ports
        self._held[run_id] = held
        # Not in the task itself: one that is cancelled before its first step runs nothing.
        task.add_done_callback(lambda ended: self._ended(run_id, ended))

    def end(self, run_id: str) -> bool:
        """Cancels the program. False: there is no hosted program with this id."""
        task = self._running.get(run_id)
        if task is not None:
            task.cancel()
        return task is not None

    def connect(self, run_id: str, port: int) -> socket.socket | None:
        """None: no hosted program with this id listens on the port. Raises OSError."""
        ports = self._ports.get(run_id)
        return None if ports is None else ports.connect(port)

    async def close(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, run_id: str, task: asyncio.Task[int]) -> None:
        del self._running[run_id]
        self._ports.pop(run_id).close()
        for descriptor in self._held.pop(run_id):
            os.close(descriptor)
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
