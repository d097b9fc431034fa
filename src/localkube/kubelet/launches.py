"""Launches: the server's side of the launcher (launcher.py).

The launcher is started when it is first needed, and again if it dies. All processes of a launcher
that has died are reported as killed: the kernel kills them with it.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from localkube.about import PACKAGE
from localkube.kubelet.frames import LENGTH, Message
from localkube.kubelet.node_files import make_private
from localkube.kubelet.outbox import Outbox
from localkube.kubelet.sandbox import View

_NOT_FOUND = 127
_KILLED = 128 + signal.SIGKILL
_END_LIMIT_S = 10.0
_START_LIMIT_S = 30.0
_DIED = "the launcher of processes has died"


class NotLaunched(OSError):
    """The machine could not start the process now: no fault of the program."""


class LaunchFailed(Exception):
    """The program could not be started: `code` is what a shell would exit with."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    def about(self, program: str) -> str:
        """In the words of the container runtimes."""
        words = self.text[:1].lower() + self.text[1:]
        if self.code == _NOT_FOUND:
            words = "executable file not found in $PATH"
        # A value of a Secret may be in it, which need not be text.
        return f'exec: "{program}": {words}'.encode(errors="replace").decode()


class Launch(NamedTuple):
    id: str  # of this process, never used again
    container: str  # the id of the container that it belongs to
    argv: Sequence[str]
    env: dict[str, str]
    cwd: str
    view: View | None  # None: no isolation
    is_main: bool = True
    tty: bool = False


Exited = Callable[[str, int], None]  # id, code


class Launches:
    def __init__(self, directory: Path, *, isolate: bool) -> None:
        """`isolate`: containers get a view of their own, if the kernel allows it."""
        self._directory = directory
        self._isolate = isolate
        self.exited: Exited = lambda run_id, code: None  # called when a process has ended
        self._process: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None
        self._outbox: Outbox | None = None
        self._received = bytearray()
        self._hello: asyncio.Future[str] | None = None
        self._starting: dict[str, asyncio.Future[int]] = {}
        self._running: set[str] = set()

    @property
    def pid(self) -> int:
        """Of the launcher, which is the parent of orphaned processes; 0 if none runs."""
        return 0 if self._process is None else self._process.pid

    async def namespaces(self) -> bool:
        """Whether containers can have their own view of the machine here."""
        missing = await self._open()
        return self._isolate and not missing

    async def missing_wall(self) -> str:
        """Why the kernel allows no wall around containers here; empty: it does, or nobody wants
        one."""
        missing = await self._open()
        return missing if self._isolate else ""

    async def start(self, launch: Launch, descriptors: list[int]) -> int:
        """Returns the pid. Takes over the descriptors, which become 0, 1, 2, ... of the program,
        and empties the list. A start that is cancelled leaves no process behind. Raises
        LaunchFailed and NotLaunched."""
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            await self._open()
            if self._outbox is None:
                raise NotLaunched(_DIED)
        except BaseException:
            while descriptors:
                os.close(descriptors.pop())
            raise

        def refused(error: OSError) -> None:
            del self._starting[launch.id]
            if not started.done():
                started.set_exception(NotLaunched(error.strerror))

        self._starting[launch.id] = started
        letter = self._outbox.put(_start_message(launch, len(descriptors)), descriptors, refused)
        try:
            return await started
        except asyncio.CancelledError:
            if self._outbox is not None and self._outbox.take_back(letter):
                del self._starting[launch.id]
            else:
                # Whether it runs by now or not: this message comes after the one that starts it.
                self.signal(launch.id, signal.SIGKILL)
            raise

    def signal(self, run_id: str, number: int) -> None:
        """For the main program of a container, SIGKILL ends all processes of the container, and any
        other signal reaches the program only. For a program of exec, the signal reaches its whole
        process group. SIGKILL is repeated by the launcher until the process has ended."""
        if self._outbox is not None and (run_id in self._running or run_id in self._starting):
            self._outbox.put({"op": "signal", "id": run_id, "number": number}, [])

    async def close(self) -> None:
        """Ends the launcher, which ends all processes."""
        process, self._process = self._process, None
        self._hang_up()
        if process is None:
            return
        try:
            await asyncio.to_thread(process.wait, _END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    async def _open(self) -> str:
        """Why containers have no wall around them here; empty: they have one."""
        if self._hello is None:
            loop = asyncio.get_running_loop()
            ours, theirs = socket.socketpair()
            # Closed after the spawn: with our copy open, the end of the launcher would not end the
            # stream.
            with contextlib.ExitStack() as stack, theirs:
                stack.enter_context(ours)
                ours.setblocking(False)
                self._process = self._spawn(theirs.fileno())
                stack.pop_all()
            self._sock = ours
            self._outbox = Outbox(ours)
            self._hello = loop.create_future()
            loop.add_reader(ours.fileno(), self._read)
        try:
            async with asyncio.timeout(_START_LIMIT_S):
                # Shielded: a caller that is cancelled or gives up must not cancel the future of all
                # others.
                return await asyncio.shield(self._hello)
        except TimeoutError:
            text = f"the launcher of processes did not answer within {_START_LIMIT_S:g} seconds"
            raise NotLaunched(text) from None

    def _spawn(self, descriptor: int) -> subprocess.Popen[bytes]:
        directory = make_private(self._directory)
        root = PACKAGE.parent
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                # Without a wall, programs are those of an ordinary user, in no namespace of ours.
                f"localkube.kubelet.{'shield' if self._isolate else 'launcher'}",
                str(descriptor),
                str(directory),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            env={"PYTHONPATH": str(root)},
            cwd="/",
            start_new_session=True,  # so that Ctrl-C in a terminal does not reach it
        )

    def _read(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        self._received += data
        while len(self._received) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._received)
            end = LENGTH.size + length
            if len(self._received) < end:
                return
            message = orjson.loads(bytes(self._received[LENGTH.size : end]))
            del self._received[:end]
            self._take(message)

    def _take(self, message: Message) -> None:
        match message["op"]:
            case "hello":
                assert self._hello is not None
                if "problem" in message:
                    self._hello.set_exception(NotLaunched(message["problem"]))
                    self._hello.exception()  # nobody may be waiting: see `_hang_up`
                    self._lost()
                else:
                    self._hello.set_result(message["missing"])
            case "started":
                self._running.add(message["id"])
                self._settle(message["id"], message["pid"])
            case "failed":
                code, text = message["code"], message["text"]
                failure = NotLaunched(text) if code is None else LaunchFailed(code, text)
                self._settle(message["id"], failure)
            case _:
                self._running.discard(message["id"])
                self._tell_exit(message["id"], message["code"])

    def _tell_exit(self, run_id: str, code: int) -> None:
        """In the next turn of the event loop. "started" and "exited" may arrive in one piece, and
        the task that waits for the start must run before the exit is reported."""
        asyncio.get_running_loop().call_soon(self.exited, run_id, code)

    def _settle(self, run_id: str, outcome: int | LaunchFailed | NotLaunched) -> None:
        future = self._starting.pop(run_id)
        if future.done():
            return  # the caller was cancelled, and SIGKILL is on its way
        if isinstance(outcome, int):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    def _lost(self) -> None:
        """The launcher has died, and all of its processes with it."""
        process, self._process = self._process, None
        self._hang_up()
        if process is not None:
            process.wait()
        for future in self._starting.values():
            if not future.done():
                future.set_exception(LaunchFailed(_KILLED, _DIED))
        self._starting.clear()
        running, self._running = self._running, set()
        for run_id in running:
            self._tell_exit(run_id, _KILLED)

    def _hang_up(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None
        if self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock.fileno())
            self._sock.close()
            self._sock = None
        if self._hello is not None and not self._hello.done():
            self._hello.set_exception(NotLaunched(_DIED))
            self._hello.exception()  # nobody may be waiting: asyncio would log that as a mistake
        self._hello = None
        self._received.clear()


def _start_message(launch: Launch, descriptors: int) -> Message:
    return {
        "op": "start",
        "id": launch.id,
        "container": launch.container,
        "main": launch.is_main,
        "argv": list(launch.argv),
        "env": launch.env,
        "cwd": launch.cwd,
        "tty": launch.tty,
        "descriptors": descriptors,
        "view": None if launch.view is None else launch.view._asdict(),
    }
