"""The launcher: a small process beside the server that starts, signals and reaps containers.

It makes sure that no container outlives the server:

- When the server ends, in whatever way, the socket between them closes. The launcher then kills all
  processes that it started, with their descendants, and ends. It is their subreaper: a process
  whose parent ends becomes a child of the launcher, not of init, so none is out of reach.
- When the launcher is killed, the kernel kills its children (PR_SET_PDEATHSIG).
- What survives both (orphaned grandchildren, when server and launcher are killed at once) is found
  by the next launcher: a small file per process has its pid, its start time and its container.

    server -> start {id, argv, env, cwd, ...} + descriptors     launcher -> started {id, pid}
    server -> signal {id, number}                                        or failed {id, text, code}
                                                                            exited {id, code}

A start is forked and then listened to; meanwhile the launcher goes on. What goes wrong with one
container is reported as the failure of that container, and never ends another.

It imports only the standard library and a few small modules, because it has to stay small.
"""

import contextlib
import errno
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from localkube.kubelet import confine, process_table
from localkube.kubelet.frames import Message, packed, receive
from localkube.kubelet.launched import become, reset_signals
from localkube.kubelet.sandbox import become_subreaper
from localkube.kubelet.shield import is_shielded
from localkube.kubelet.system_view import machine, private_files
from localkube.kubelet.wall import missing_wall

# It ends only when the server does; and an error of a write is for the caller to see.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
_GRACE_S = 1.0  # at the end, between SIGTERM and SIGKILL
_AGAIN_S = 0.05  # between two SIGKILLs to a container that has not ended yet
_KILLED = "killed before its program had started"


@dataclass(slots=True)
class Starting:
    """A process that has been forked, and has not reported yet whether its program runs."""

    message: Message
    first: int  # the pid of the fork
    outcome: int  # the descriptors of launched.py's protocol
    go: int
    has_init: bool  # the container gets its own process namespace
    pid: int = 0  # of the launcher's child that stays, once it is known
    said: bytearray = field(default_factory=bytearray)

    def give_up(self, ended: Container[int]) -> None:
        """Ends it, at any step: a process that waits for the launcher sees the end of the pipe."""
        if self.go >= 0:
            os.close(self.go)
            self.go = -1
        if (pid := self.pid or self.first) not in ended:
            _kill(pid)


class Launched(NamedTuple):
    """A process that the launcher has started. The key in `_runs` is the pid of its child: of the
    program, or of the container's init, if the container has its own process namespace."""

    id: str
    container: str
    is_main: bool  # its end is the end of the container
    has_init: bool
    program: int  # pid of the program, as seen from here


class Launcher:
    def __init__(self, sock: socket.socket, directory: Path) -> None:
        self._sock = sock
        self._directory = directory  # a file per process, named by its pid: `_note`
        self._selector = selectors.DefaultSelector()
        self._starting: dict[str, Starting] = {}
        self._runs: dict[int, Launched] = {}
        self._pids: dict[str, int] = {}
        # Children that have ended, and were not reported yet: their status. While something starts,
        # also unknown ones: perhaps one of them is a program, and not an orphaned grandchild.
        self._ended: dict[int, int] = {}
        self._doomed: set[str] = set()  # SIGKILL was requested, and they have not ended yet

    def serve(self) -> None:
        """Runs until the server is gone."""
        try:
            woken, missing = self._prepare()
        except OSError as error:
            self._send({"op": "hello", "problem": str(error)})
            return
        self._send({"op": "hello", "missing": missing})
        while True:
            ready = self._selector.select(_AGAIN_S if self._doomed or self._ended else None)
            for key, _ in ready:
                if isinstance(key.data, Starting):
                    self._hear(key.data)
            descriptors = {key.fd for key, _ in ready}
            if woken in descriptors:
                os.read(woken, 4096)
                self._reap()
            if self._sock.fileno() in descriptors and not self._take():
                break
            self._finish()
        self._end_all()

    def _prepare(self) -> tuple[int, str]:
        """The descriptor that signals are told by, and why containers have no wall."""
        become_subreaper()
        # Before "hello", after which the server may start containers.
        self._sweep()
        missing = missing_wall(self._directory)
        if not missing and not is_shielded():
            missing = "the program file of the launcher cannot be mounted read-only"
        if not missing:
            # For all containers at once; each adds its own. After the sweep: processes of an
            # earlier launcher are others, too.
            private_files()
            confine.prepare()
            confine.gain_nothing()
            confine.scope_sockets()
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        # A handler is needed: Python writes to the wakeup descriptor only for signals that have
        # one.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._selector.register(self._sock, selectors.EVENT_READ)
        self._selector.register(woken, selectors.EVENT_READ)
        return woken, missing

    def _take(self) -> bool:
        """False: the server is gone."""
        try:
            received = receive(self._sock)
        except OSError:
            return False
        if received is None:
            return False
        message, descriptors = received
        if message["op"] == "start":
            self._start(message, descriptors)
        elif message["number"] == signal.SIGKILL:
            self._doomed.add(message["id"])
        else:
            self._signal(message["id"], message["number"])
        return True

    def _start(self, message: Message, descriptors: list[int]) -> None:
        try:
            if len(descriptors) < message["descriptors"]:  # the kernel drops what has no room here
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            self._fork(message, descriptors)
        except OSError as error:
            self._fail(message["id"], None, error.strerror or str(error))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _fork(self, message: Message, descriptors: list[int]) -> None:
        host = self._host_of(message)
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            outcome, child_side = os.pipe()
            ours.callback(os.close, outcome)
            theirs.callback(os.close, child_side)
            waiting, go = os.pipe()
            ours.callback(os.close, go)
            theirs.callback(os.close, waiting)
            has_init = message["view"] is not None and host is None
            if has_init:  # here, where it is kept for the next ones
                machine(tuple(message["view"]["hidden"]), tuple(message["view"]["needed"]))
            start = Starting(message, 0, outcome, go, has_init)
            self._selector.register(outcome, selectors.EVENT_READ, start)
            ours.callback(self._selector.unregister, outcome)
            start.first = os.fork()
            if start.first == 0:
                become(message, descriptors, child_side, waiting, host)
            ours.pop_all()
        self._starting[message["id"]] = start

    def _hear(self, start: Starting) -> None:
        data = os.read(start.outcome, 4096)
        start.said += data
        if not start.pid and b"\n" in start.said:
            line, _, rest = start.said.partition(b"\n")
            start.pid, start.said = int(line), rest
            if start.pid != start.first:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(start.first, 0)  # it exits now, and its child becomes our child
            with contextlib.suppress(OSError):
                os.write(start.go, b"g")
        # The end when the program has replaced the process: exec closes the pipe.
        if not data:
            self._settle(start)

    def _settle(self, start: Starting) -> None:
        message, pid = start.message, start.pid
        self._selector.unregister(start.outcome)
        os.close(start.outcome)
        if start.go >= 0:
            os.close(start.go)
        del self._starting[message["id"]]
        if start.said or not pid:
            code, _, text = (start.said.decode(errors="replace") or f"126 {_KILLED}").partition(" ")
            self._doomed.discard(message["id"])
            self._fail(message["id"], int(code), text)
            return
        program = process_table.only_child(pid) if start.has_init else pid
        run = Launched(
            message["id"], message["container"], message["main"], start.has_init, program
        )
        self._runs[pid] = run
        self._pids[run.id] = pid
        self._note(pid, run.container)
        self._send({"op": "started", "id": run.id, "pid": program})

    def _host_of(self, message: Message) -> int | None:
        """The pid of the init of the running container that a program of exec has to join; None:
        the program gets namespaces of its own, or none."""
        if message["view"] is None or message["main"]:
            return None
        container = message["container"]
        return next(
            (p for p, r in self._runs.items() if r.is_main and r.container == container), None
        )

    def _signal(self, run_id: str, number: int) -> None:
        pid = self._pids.get(run_id)
        if pid is None or pid in self._ended:
            return
        run = self._runs[pid]
        with contextlib.suppress(OSError):
            if run.is_main:
                # Only the program: it has to end its children itself, as in any container.
                os.kill(run.program, number)
            else:
                os.killpg(run.program, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._ended[ended[0]] = ended[1]

    def _finish(self) -> None:
        """Reports what has ended, and kills what has to end. What fails here, because the machine
        has no descriptors or memory left, is tried again after a moment."""
        for pid, status in list(self._ended.items()):
            if pid in self._runs:
                with contextlib.suppress(OSError):
                    self._end(pid, status)
            elif not self._starting:
                self._ended.pop(pid, None)
        for run_id in list(self._doomed):
            with contextlib.suppress(OSError):
                self._kill_run(run_id)

    def _end(self, pid: int, status: int) -> None:
        run = self._runs[pid]
        if run.is_main and not run.has_init:
            self._kill_container(run.container, pid)
        del self._runs[pid], self._pids[run.id], self._ended[pid]
        with contextlib.suppress(OSError):
            (self._directory / str(pid)).unlink()
        code = os.waitstatus_to_exitcode(status)
        code = code if code >= 0 else 128 - code
        self._send({"op": "exited", "id": run.id, "code": code})

    def _kill_run(self, run_id: str) -> None:
        pid = self._pids.get(run_id)
        if run_id in self._starting:
            self._starting[run_id].give_up(self._ended)
        elif pid is None:
            self._doomed.discard(run_id)
        elif pid in self._ended:
            pass  # `_end` is on its way
        elif not self._runs[pid].is_main:
            self._signal(run_id, signal.SIGKILL)
        elif self._runs[pid].has_init:
            _kill(pid)  # the kernel kills the rest of its process namespace
        else:
            self._kill_container(self._runs[pid].container, pid)

    def _kill_container(self, container: str, main: int) -> None:
        """Kills all processes of the container, including those that have left its sessions."""
        leaders = {pid: run.container for pid, run in self._runs.items()} | {main: container}
        for _ in range(10):  # processes that fork meanwhile are found in the next round
            processes = process_table.of_containers(leaders, os.getpid())
            found = {e.pid for owner, e in processes if owner == container}
            if not found:
                return
            for pid in found:
                _kill(pid)
            time.sleep(0.001)
            self._reap()

    def _note(self, pid: int, container: str) -> None:
        """A container without its note runs all the same: the note only helps the next launcher."""
        note = self._directory / str(pid)
        try:
            note.write_text(f"{process_table.start_time(pid)} {container}")
        except OSError:
            with contextlib.suppress(OSError):
                note.unlink()

    def _sweep(self) -> None:
        """Kills processes that an earlier launcher left behind. The start time tells whether a pid
        still belongs to the same process."""
        leaders: set[int] = set()
        marks: set[bytes] = set()
        notes = [file for file in self._directory.iterdir() if file.name.isdecimal()]
        for file in notes:
            started, _, container = file.read_bytes().partition(b" ")
            if container:
                marks.add(b"%s=%s" % (process_table.MARK.encode(), container))
            if started == b"%d" % process_table.start_time(int(file.name)):
                leaders.add(int(file.name))
        while marks and (found := process_table.marked(leaders, marks)):
            for pid in found:
                _kill(pid)
            time.sleep(0.001)
        for file in notes:
            file.unlink()

    def _fail(self, run_id: str, code: int | None, text: str) -> None:
        """`code`: what a shell would exit with; None: it is no fault of the program."""
        self._send({"op": "failed", "id": run_id, "code": code, "text": text})

    def _send(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # the server is gone: `serve` will notice
            head, body = packed(message)
            self._sock.sendall(head + body)

    def _end_all(self) -> None:
        self._selector.close()  # also makes room for the descriptors that are needed below
        self._sock.close()
        for start in self._starting.values():
            start.give_up(self._ended)
        for run in self._runs.values():
            with contextlib.suppress(OSError):
                os.killpg(run.program, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_S
        while self._runs.keys() - self._ended.keys() and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.01)
        while descendants := process_table.descendants(os.getpid()):
            for pid in descendants:
                _kill(pid)
            time.sleep(0.005)
            self._reap()


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def main() -> None:
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)  # containers must not get at it
    sock.setblocking(True)
    reset_signals()  # with SIGCHLD blocked, it would never see the end of a container
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    Launcher(sock, Path(sys.argv[2])).serve()


if __name__ == "__main__":
    main()
