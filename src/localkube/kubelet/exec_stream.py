"""A client at the streams of a program that was started for it (kubectl exec)."""

import asyncio
import os
import pty
import signal
from collections.abc import AsyncIterator

from localkube.kubelet.container_run import Inside
from localkube.kubelet.descriptors import Source, Writer, resize
from localkube.kubelet.exec_process import ExecProcesses
from localkube.kubelet.launches import LaunchFailed
from localkube.node_streams import ExecOptions, Process

_HANG_UP_S = 2.0


class ExecStream:
    """Made by `start_exec`."""

    def __init__(self, execs: ExecProcesses, run_id: str, exited: asyncio.Future[int]) -> None:
        self._execs = execs
        self._run_id = run_id
        self._exited = exited
        self.out: Source | None = None
        self.err: Source | None = None
        self.stdin: Writer | None = None
        self.terminal: int | None = None
        exited.add_done_callback(lambda _: self._ended())

    async def stdout(self) -> AsyncIterator[bytes]:
        if self.out is not None:
            while data := await self.out.read():
                yield data

    async def stderr(self) -> AsyncIterator[bytes]:
        if self.err is not None:
            while data := await self.err.read():
                yield data

    async def write_stdin(self, data: bytes) -> None:
        if self.stdin is not None:
            await self.stdin.write(data)

    async def close_stdin(self) -> None:
        if self.stdin is not None:
            if self.terminal is not None:
                await self.stdin.write(b"\x04")  # the end of input, as a terminal says it
            else:
                self.stdin.close()

    async def resize(self, width: int, height: int) -> None:
        if self.terminal is not None:
            resize(self.terminal, width, height)

    async def wait(self) -> int:
        return await asyncio.shield(self._exited)

    async def hang_up(self) -> None:
        if not self._exited.done():
            self._execs.signal(self._run_id, signal.SIGHUP)
            kill = self._execs.signal
            loop = asyncio.get_running_loop()
            loop.call_later(_HANG_UP_S, kill, self._run_id, signal.SIGKILL)
        for end in (self.out, self.err, self.stdin):
            if end is not None:
                end.close()
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def _ended(self) -> None:
        for source in (self.out, self.err):
            if source is not None:
                source.end()


class FailedExec:
    """A program that could not be started: it says why, and exits as in a shell."""

    def __init__(self, text: str, code: int, options: ExecOptions) -> None:
        self._text = text.encode() + (b"\r\n" if options.tty else b"\n")
        self._code = code
        self._options = options

    async def stdout(self) -> AsyncIterator[bytes]:
        if self._options.tty:
            yield self._text

    async def stderr(self) -> AsyncIterator[bytes]:
        if self._options.stderr and not self._options.tty:
            yield self._text

    async def write_stdin(self, data: bytes) -> None:
        """Nobody reads it."""

    async def close_stdin(self) -> None:
        """Nobody reads it."""

    async def resize(self, width: int, height: int) -> None:
        """There is no terminal."""

    async def wait(self) -> int:
        return self._code

    async def hang_up(self) -> None:
        """It has ended already."""


async def start_exec(execs: ExecProcesses, inside: Inside, options: ExecOptions) -> Process:
    try:
        return await _started(execs, inside, options)
    except LaunchFailed as error:
        return FailedExec(error.about(options.command[0]), error.code, options)


async def _started(execs: ExecProcesses, inside: Inside, options: ExecOptions) -> ExecStream:
    """Raises LaunchFailed."""
    ours, theirs = _terminal_ends(options) if options.tty else _pipe_ends(options)
    if options.tty:
        inside = inside._replace(env={"TERM": "xterm"} | inside.env)
    try:
        run_id, exited = await execs.start(inside, options.command, theirs, tty=options.tty)
    except BaseException:
        for descriptor in ours:
            if descriptor is not None:
                os.close(descriptor)
        raise
    stream = ExecStream(execs, run_id, exited)
    out, err, stdin, terminal = ours
    stream.out = None if out is None else Source(out)
    stream.err = None if err is None else Source(err)
    stream.stdin = None if stdin is None else Writer(stdin)
    stream.terminal = terminal
    return stream


# Ours: stdout, stderr, stdin, the terminal; None: not asked for.
_Ours = tuple[int | None, int | None, int | None, int | None]


def _terminal_ends(options: ExecOptions) -> tuple[_Ours, list[int]]:
    master, slave = pty.openpty()
    stdin = os.dup(master) if options.stdin else None
    return (os.dup(master), None, stdin, master), [slave, os.dup(slave), os.dup(slave)]


def _pipe_ends(options: ExecOptions) -> tuple[_Ours, list[int]]:
    stdin = out = err = None
    theirs: list[int] = []
    if options.stdin:
        reading, stdin = os.pipe()
        theirs.append(reading)
    else:
        theirs.append(os.open(os.devnull, os.O_RDONLY))
    if options.stdout:
        out, writing = os.pipe()
        theirs.append(writing)
    else:
        theirs.append(os.open(os.devnull, os.O_WRONLY))
    if options.stderr:
        err, writing = os.pipe()
        theirs.append(writing)
    else:
        theirs.append(os.open(os.devnull, os.O_WRONLY))
    return (out, err, stdin, None), theirs
