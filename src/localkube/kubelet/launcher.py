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

It imports only the standard library and a few small modules, because it has to stay small.
"""

import contextlib
import fcntl
import os
import resource
import select
import selectors
import signal
import socket
import sys
import termios
import time
from pathlib import Path
from typing import NamedTuple

from localkube.kubelet import process_table
from localkube.kubelet.frames import Message, packed, receive
from localkube.kubelet.node_files import remove_tree
from localkube.kubelet.sandbox import (
    Bind,
    View,
    become_subreaper,
    die_with_parent,
    enter,
    join,
    leave,
)

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # it ends only when the server does
_GRACE_S = 1.0  # at the end, between SIGTERM and SIGKILL
# Above all numbers that descriptors of a container get.
_FIRST_FREE = 64
_OPEN_FILES = 65_536
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class Launched(NamedTuple):
    """A process that the launcher has started. The key in `_runs` is the pid of its child: of the
    program, or of the container's init, if the container has its own process namespace."""

    id: str
    container: str
    is_main: bool  # its end is the end of the container
    program: int  # pid of the program, as seen from here


class Launcher:
    def __init__(self, sock: socket.socket, directory: Path) -> None:
        self._sock = sock
        self._directory = directory  # a file per process, named by its pid: `_note`
        self._runs: dict[int, Launched] = {}
        self._pids: dict[str, int] = {}

    def serve(self) -> None:
        """Runs until the server is gone."""
        become_subreaper()
        # Before "hello", after which the server may start containers.
        self._sweep()
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        # A handler is needed: Python writes to the wakeup descriptor only for signals that have
        # one.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._send({"op": "hello", "namespaces": _can_make_namespaces(self._directory)})
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if woken in ready:
                    os.read(woken, 4096)
                    self._reap()
                if self._sock.fileno() in ready and not self._take():
                    break
        self._end_all()

    def _take(self) -> bool:
        with contextlib.suppress(OSError):
            received = receive(self._sock)
            if received is not None:
                message, descriptors = received
                if message["op"] == "start":
                    self._start(message, descriptors)
                else:
                    self._signal(message["id"], message["number"])
                return True
        return False

    def _start(self, message: Message, descriptors: list[int]) -> None:
        outcome, child_side = os.pipe()
        waiting, go = os.pipe()
        host = self._host_of(message)
        first = os.fork()
        if first == 0:
            # If the child kept this end, the pipe would not close when the launcher dies.
            os.close(go)
            _become(message, descriptors, child_side, waiting, host)
        for descriptor in (*descriptors, child_side, waiting):
            os.close(descriptor)
        with open(outcome, "rb") as file:
            line = file.readline()
            pid = int(line) if line.endswith(b"\n") else first
            if pid != first:
                os.waitpid(first, 0)  # it has ended, and its child is our child now
            with contextlib.suppress(OSError):
                os.write(go, b"g")
            # EOF when the program has replaced the child: exec closes the pipe.
            problem = file.read() if line.endswith(b"\n") else line
        os.close(go)
        has_init = message["view"] is not None and host is None
        program = process_table.only_child(pid) if has_init and not problem else pid
        self._runs[pid] = Launched(message["id"], message["container"], message["main"], program)
        self._pids[message["id"]] = pid
        if problem:
            code, _, text = problem.decode().partition(" ")
            os.waitpid(pid, 0)
            self._drop(pid)
            self._send({"op": "failed", "id": message["id"], "code": int(code), "text": text})
            return
        self._note(pid, message["container"])
        self._send({"op": "started", "id": message["id"], "pid": program})

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
        if pid is None:
            return
        run = self._runs[pid]
        with contextlib.suppress(OSError):
            if not run.is_main:
                os.killpg(run.program, number)
            elif number == signal.SIGKILL:
                self._kill_container(run.container, pid)
            else:
                # Only the program: it has to end its children itself, as in any container.
                os.kill(run.program, number)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            run = self._runs.get(pid)
            if run is None:
                continue  # an orphaned grandchild
            self._drop(pid)
            if run.is_main:
                self._kill_container(run.container, pid)
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            self._send({"op": "exited", "id": run.id, "code": code})

    def _drop(self, pid: int) -> None:
        del self._pids[self._runs.pop(pid).id]
        with contextlib.suppress(FileNotFoundError):
            (self._directory / str(pid)).unlink()

    def _kill_container(self, container: str, main: int) -> None:
        """Kills all processes of the container, including those that have left its sessions."""
        leaders = {pid: run.container for pid, run in self._runs.items()} | {main: container}
        leaders |= {run.program: run.container for run in self._runs.values()}
        for _ in range(10):  # processes that fork meanwhile are found in the next round
            processes = process_table.of_containers(leaders, os.getpid())
            found = {e.pid for owner, e in processes if owner == container}
            if not found:
                return
            for pid in found:
                _kill(pid)
            time.sleep(0.001)
            with contextlib.suppress(ChildProcessError):
                for pid in found - set(self._runs):
                    os.waitpid(pid, os.WNOHANG)

    def _note(self, pid: int, container: str) -> None:
        note = f"{process_table.start_time(pid)} {container}"
        (self._directory / str(pid)).write_text(note)

    def _sweep(self) -> None:
        """Kills processes that an earlier launcher left behind. The start time tells whether a pid
        still belongs to the same process."""
        leaders: set[int] = set()
        marks: set[bytes] = set()
        notes = [file for file in self._directory.iterdir() if file.name.isdigit()]
        for file in notes:
            started, _, container = file.read_text().partition(" ")
            marks.add(f"{process_table.MARK}={container}".encode())
            if started == str(process_table.start_time(int(file.name))):
                leaders.add(int(file.name))
        while marks and (found := process_table.marked(leaders, marks)):
            for pid in found:
                _kill(pid)
            time.sleep(0.001)
        for file in notes:
            file.unlink()

    def _send(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # the server is gone: `serve` will notice
            head, body = packed(message)
            self._sock.sendall(head + body)

    def _end_all(self) -> None:
        for run in self._runs.values():
            with contextlib.suppress(OSError):
                os.killpg(run.program, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_S
        while self._runs and time.monotonic() < deadline:
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


def _become(
    message: Message, descriptors: list[int], outcome: int, waiting: int, host: int | None
) -> None:
    """Runs in the forked process: turns it into the program, or reports why not. Does not return.

    The protocol, over two pipes. With a view, this process forks again, because unshare and setns
    put only later children into a process namespace. It writes the pid of the child to `outcome`
    and exits, so that the launcher, as subreaper, becomes the child's parent. The child waits on
    `waiting` until that is so, because PR_SET_PDEATHSIG is about the current parent. Without a view
    this process is the child itself. A failure is written to `outcome` as "code text"; success
    closes `outcome` by exec, because the pipe is close-on-exec.
    """
    view = None if message["view"] is None else _view(message["view"])
    try:
        _take_descriptors(descriptors)
        _set_limits()
        child = 0
        if view is not None:
            leave(view) if host is None else join(host)
            child = os.fork()
        if child or view is None:
            os.write(outcome, b"%d\n" % (child or os.getpid()))
        if child:
            os._exit(0)
        _wait_for_parent(waiting)
        if view is not None and host is None:
            os.setsid()
            enter(view)
            if child := os.fork():
                _reap_until_end_of(child)
        _run(message)
    except OSError as error:
        code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        os.write(outcome, f"{code} {error.strerror}".encode())
    finally:
        os._exit(_NOT_EXECUTABLE)


def _run(message: Message) -> None:
    os.setsid()
    if message["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _go_to(message["cwd"])
    # Ignored signals stay ignored across exec: the program could not be stopped by SIGTERM.
    for number in (*_IGNORED, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(message["argv"][0], message["argv"], message["env"])


def _wait_for_parent(waiting: int) -> None:
    """Waits until the launcher is the parent, and then asks the kernel to kill this process with
    it."""
    said = os.read(waiting, 1)
    die_with_parent(signal.SIGKILL)
    poll = select.poll()
    poll.register(waiting, 0)
    # The launcher may have died before prctl took effect: then the other end is closed.
    if not said or poll.poll(0):
        os._exit(_NOT_EXECUTABLE)


def _reap_until_end_of(program: int) -> None:
    """The container's init, process 1 of its process namespace. When it ends, the kernel kills all
    processes of the container. Processes inside cannot kill it: the kernel drops signals to process
    1 for which it has no handler. Does not return."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Open copies in init would keep readers of the program's output from seeing its end, and the
    # launcher from seeing the exec.
    os.closerange(0, _OPEN_FILES)
    while True:
        pid, status = os.wait()
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _view(given: Message) -> View:
    binds = tuple(Bind(*bind) for bind in given["binds"])
    paths = {key: tuple(given[key]) for key in ("needed", "hidden")}
    return View(**{**given, "binds": binds, **paths})


def _take_descriptors(descriptors: list[int]) -> None:
    """Makes them 0, 1, 2 and so on. They are moved to high numbers first, so that none is
    overwritten before it is copied."""
    aside = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for fd in descriptors]
    for number, fd in enumerate(aside):
        os.dup2(fd, number)


def _set_limits() -> None:
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(_OPEN_FILES, hard) if hard != resource.RLIM_INFINITY else _OPEN_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.nice(5)  # the cluster itself has priority
    with contextlib.suppress(OSError):  # when memory is short, containers are killed first
        Path("/proc/self/oom_score_adj").write_text("500")


def _go_to(cwd: str) -> None:
    with contextlib.suppress(OSError):
        os.makedirs(cwd, exist_ok=True)
    os.chdir(cwd)


def _can_make_namespaces(directory: Path) -> bool:
    """Whether the kernel lets this user make namespaces: tried once, in a child."""
    root = directory / "probe"
    root.mkdir(exist_ok=True)
    view = View(str(root), "probe", 0, 0, (Bind(str(root), "/tmp"),))
    pid = os.fork()
    if pid == 0:
        try:
            leave(view)
            if child := os.fork():
                os._exit(os.waitpid(child, 0)[1] != 0)
            enter(view)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    remove_tree(root)
    return status == 0


def main() -> None:
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)  # containers must not get at it
    sock.setblocking(True)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    Launcher(sock, Path(sys.argv[2])).serve()


if __name__ == "__main__":
    main()
