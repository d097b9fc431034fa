"""The streams of a process for a client: of the container's own program (kubectl attach), or of a
program that is started for the client (kubectl exec).
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncIterator

from localkube.kubelet.container_log import STDERR, STDOUT
from localkube.kubelet.container_run import ContainerRun, Inside
from localkube.kubelet.descriptors import Source, Writer, resize
from localkube.kubelet.exec_process import ExecProcesses
from localkube.kubelet.launches import LaunchFailed
from localkube.kubelet.terminals import open_terminal
from localkube.node_streams import AttachOptions, ExecOptions, Process

_MOST_WAITING = 1024 * 1024
_NOT_STARTED = 126  # what a shell would exit with


class AttachStream:
    """The streams of a container's own program. If the client does not keep up, the program's
    output is held, so that it has to wait, and not the server's memory has to grow."""

    def __init__(self, run: ContainerRun, options: AttachOptions) -> None:
        self._run = run
        self._options = options
        self._waiting: dict[bytes, deque[bytes]] = {STDOUT: deque(), STDERR: deque()}
        self._wanted = {STDOUT: options.stdout, STDERR: options.stderr and not options.tty}
        self._size = 0
        self._holding = False
        self._over = False
        self._news = {STDOUT: asyncio.Event(), STDERR: asyncio.Event()}
        run.output.add(self)

    def heard(self, stream: bytes, data: bytes) -> None:
        if not self._wanted[stream] or self._over:
            return
        self._waiting[stream].append(data)
        self._size += len(data)
        self._news[stream].set()
        if self._size > _MOST_WAITING and not self._holding:
            self._holding = True
            for reader in self._run.output.readers:
                reader.hold()

    def over(self) -> None:
        self._over = True
        for event in self._news.values():
            event.set()

    def stdout(self) -> AsyncIterator[bytes]:
        return self._stream(STDOUT)

    def stderr(self) -> AsyncIterator[bytes]:
        return self._stream(STDERR)

    async def write_stdin(self, data: bytes) -> None:
        if self._options.stdin and self._run.stdin is not None:
            await self._run.stdin.write(data)

    async def close_stdin(self) -> None:
        stdin = self._run.stdin
        if self._options.stdin and stdin is not None and self._run.spec.get("stdinOnce"):
            if self._run.terminal is not None:
                await stdin.write(b"\x04")
            else:
                stdin.close()

    async def resize(self, width: int, height: int) -> None:
        if self._run.terminal is not None:
            resize(self._run.terminal, width, height)

    async def wait(self) -> int:
        return await asyncio.shield(self._run.exited)

    async def hang_up(self) -> None:
        self._run.output.remove(self)
        self.over()
        self._let_go()

    async def _stream(self, stream: bytes) -> AsyncIterator[bytes]:
        waiting, news = self._waiting[stream], self._news[stream]
        while self._wanted[stream]:
            while waiting:
                data = waiting.popleft()
                self._size -= len(data)
                if self._size < _MOST_WAITING // 2:
                    self._let_go()
                yield data
            if self._over:
                return
            news.clear()
            await news.wait()

    def _let_go(self) -> None:
        if self._holding:
            self._holding = False
            for reader in self._run.output.readers:
                reader.go_on()


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
                await self.stdin.write(b"\x04")  # Ctrl-D: the end of input in a terminal
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
    """A program that could not be started: prints the reason, and exits with the code of a
    shell."""

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


async def start_exec(
    execs: ExecProcesses, inside: Inside, options: ExecOptions, pid: int
) -> Process:
    """`pid`: a process of the container; 0 if it has none."""
    try:
        return await _started(execs, inside, options, pid)
    except LaunchFailed as error:
        failure = error
    except OSError as error:  # the machine has no descriptors or processes left
        failure = LaunchFailed(_NOT_STARTED, str(error))
    return FailedExec(failure.about(options.command[0]), failure.code, options)


async def _started(
    execs: ExecProcesses, inside: Inside, options: ExecOptions, pid: int
) -> ExecStream:
    """Raises LaunchFailed and OSError."""
    ours: dict[str, int] = {}
    theirs: list[int] = []
    if options.tty:
        inside = inside._replace(env={"TERM": "xterm"} | inside.env)
    try:
        if options.tty:
            _open_terminal(options, pid, ours, theirs)
        else:
            _open_pipes(options, ours, theirs)
        run_id, exited = await execs.start(inside, options.command, theirs, tty=options.tty)
    except BaseException:
        for descriptor in (*ours.values(), *theirs):
            os.close(descriptor)
        raise
    stream = ExecStream(execs, run_id, exited)
    stream.out = Source(ours["stdout"]) if "stdout" in ours else None
    stream.err = Source(ours["stderr"]) if "stderr" in ours else None
    stream.stdin = Writer(ours["stdin"]) if "stdin" in ours else None
    stream.terminal = ours.get("terminal")
    return stream


def _open_terminal(options: ExecOptions, pid: int, ours: dict[str, int], theirs: list[int]) -> None:
    ours["terminal"], slave = open_terminal(pid)
    theirs.append(slave)
    theirs.append(os.dup(slave))
    theirs.append(os.dup(slave))
    ours["stdout"] = os.dup(ours["terminal"])
    if options.stdin:
        ours["stdin"] = os.dup(ours["terminal"])


def _open_pipes(options: ExecOptions, ours: dict[str, int], theirs: list[int]) -> None:
    """The server's ends by name, if the client wants them, and the program's ends."""
    for name in ("stdin", "stdout", "stderr"):
        if not getattr(options, name):
            theirs.append(os.open(os.devnull, os.O_RDWR))
            continue
        reading, writing = os.pipe()
        ours[name], their = (writing, reading) if name == "stdin" else (reading, writing)
        theirs.append(their)
