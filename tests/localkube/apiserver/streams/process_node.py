"""A node whose containers are processes of this machine, for tests."""

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator, Sequence

from localkube.node_streams import (
    AttachOptions,
    Connection,
    ExecOptions,
    LogOptions,
    NodeRefusal,
    NodeStreams,
    Process,
)

CHUNK = 32 * 1024


class PipedProcess:
    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child
        self.hang_ups = 0

    def stdout(self) -> AsyncIterator[bytes]:
        return _chunks(self.child.stdout)

    def stderr(self) -> AsyncIterator[bytes]:
        return _chunks(self.child.stderr)

    async def write_stdin(self, data: bytes) -> None:
        if self.child.stdin is not None:
            with contextlib.suppress(OSError):
                self.child.stdin.write(data)
                await self.child.stdin.drain()

    async def close_stdin(self) -> None:
        if self.child.stdin is not None:
            self.child.stdin.close()

    async def resize(self, width: int, height: int) -> None:
        pass

    async def wait(self) -> int:
        code = await self.child.wait()
        return code if code >= 0 else 128 - code

    async def hang_up(self) -> None:
        self.hang_ups += 1
        with contextlib.suppress(ProcessLookupError):
            self.child.send_signal(signal.SIGHUP)
        await _reaped(self.child)


async def _ended(child: asyncio.subprocess.Process) -> None:
    """Also where the server was closed before its last hang-up was through."""
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    await _reaped(child)


async def _reaped(child: asyncio.subprocess.Process) -> None:
    await child.wait()
    # Pipes with something unread in them would outlive the event loop.
    child._transport.close()  # type: ignore[attr-defined]  # there is no public way


async def _chunks(reader: asyncio.StreamReader | None) -> AsyncIterator[bytes]:
    while reader is not None and (data := await reader.read(CHUNK)):
        yield data


class TerminalProcess:
    def __init__(self, child: asyncio.subprocess.Process, terminal: int) -> None:
        self.child = child
        self.hang_ups = 0
        self._terminal = terminal

    async def stdout(self) -> AsyncIterator[bytes]:
        with contextlib.suppress(OSError):  # EIO: nobody has the other side open
            while data := await asyncio.to_thread(os.read, self._terminal, CHUNK):
                yield data

    def stderr(self) -> AsyncIterator[bytes]:
        return _chunks(None)

    async def write_stdin(self, data: bytes) -> None:
        await asyncio.to_thread(os.write, self._terminal, data)

    async def close_stdin(self) -> None:
        await self.write_stdin(b"\x04")

    async def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def wait(self) -> int:
        return await self.child.wait()

    async def hang_up(self) -> None:
        self.hang_ups += 1
        with contextlib.suppress(ProcessLookupError):
            self.child.send_signal(signal.SIGHUP)
        await _reaped(self.child)
        os.close(self._terminal)


class SocketConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close_write(self) -> None:
        self._writer.write_eof()

    async def close(self) -> None:
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class ProcessNode:
    """Keeps what it was asked for."""

    def __init__(self, ports: Sequence[int] = ()) -> None:
        self.ports = list(ports)
        self.log_lines: list[bytes] = []
        self.log_options: LogOptions | None = None
        self.log_ended = asyncio.Event()
        self.refusal: NodeRefusal | None = None
        self.options: ExecOptions | AttachOptions | None = None
        self.processes: list[PipedProcess | TerminalProcess] = []
        self.may_start = asyncio.Event()
        self.may_start.set()

    async def end(self) -> None:
        for process in self.processes:
            await _ended(process.child)

    async def logs(self, pod_uid: str, options: LogOptions) -> AsyncIterator[bytes]:
        self.log_options = options
        if self.refusal is not None:
            raise self.refusal
        try:
            for line in self.log_lines:
                yield line
            if options.follow:
                await asyncio.Event().wait()
        finally:
            self.log_ended.set()

    async def exec(self, pod_uid: str, options: ExecOptions) -> Process:
        self.options = options
        if self.refusal is not None:
            raise self.refusal
        await self.may_start.wait()
        process = await (_in_terminal if options.tty else _with_pipes)(options.command)
        self.processes.append(process)
        return process

    async def attach(self, pod_uid: str, options: AttachOptions) -> Process:
        self.options = options
        process = await _with_pipes(("cat",))
        self.processes.append(process)
        return process

    async def dial(self, pod_uid: str, port: int) -> Connection:
        if port not in self.ports:
            raise NodeRefusal(f"nothing listens on port {port}", code=404)
        return SocketConnection(*await asyncio.open_connection("127.0.0.1", port))


def _conforms(node: ProcessNode) -> NodeStreams:
    return node


async def _with_pipes(command: Sequence[str]) -> PipedProcess:
    pipe = asyncio.subprocess.PIPE
    return PipedProcess(
        await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    )


async def _in_terminal(command: Sequence[str]) -> TerminalProcess:
    ours, theirs = pty.openpty()
    child = await asyncio.create_subprocess_exec(
        *command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    return TerminalProcess(child, ours)
