"""What a process does between its fork from the launcher (launcher.py) and its program.

The protocol, over two pipes. With a view, the first process forks again, because unshare and setns
put only later children into a process namespace. It writes the pid of the child to `outcome` and
exits, so that the launcher, as subreaper, becomes the child's parent. The child waits on `waiting`
until that is so, because PR_SET_PDEATHSIG is about the current parent. Without a view the first
process is the child itself. A failure is written to `outcome` as "code text"; success closes
`outcome` by exec, because the pipe is close-on-exec.
"""

import array  # noqa: F401  # for socket.send_fds, which imports it late
import contextlib
import encodings.ascii  # noqa: F401  # for files that are opened as text
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import stat
import sys
import termios
import warnings  # noqa: F401  # for os.execvpe, which imports it late
from itertools import pairwise
from pathlib import Path

from localkube.kubelet.confine import confine, gain_nothing, hide_memory, use_no_capabilities
from localkube.kubelet.frames import Message
from localkube.kubelet.sandbox import (
    Bind,
    View,
    die_with_parent,
    enter,
    follow,
    join,
    leave,
    lock,
)

# Above all numbers that descriptors of a container get.
_FIRST_FREE = 64
_OPEN_FILES = 65_536
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class _NoProgram(OSError):
    """The program itself is missing, and not a mount or a directory."""


def become(
    message: Message, descriptors: list[int], outcome: int, waiting: int, host: int | None
) -> None:
    """Turns this process, a fork of the launcher, into the program, or reports why not. `host` is a
    process whose namespaces it joins. Does not return."""
    try:
        die_with_parent(signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        gc.disable()  # a collection would copy the memory that is shared with the launcher
        # The launcher's own: an open copy of its ends would outlive it, and hide its end from the
        # server and from processes that wait for it.
        _close_all_but({*descriptors, outcome, waiting})
        _refuse_nul(message)
        view = None if message["view"] is None else _view(message["view"])
        _take_descriptors(descriptors)
        _set_limits()
        child = 0
        if view is not None:
            import_nothing_more()
            if host is None:
                leave(view)
            else:
                # Programs of the container see this process as soon as it has joined them.
                hide_memory()
                join(host)
            child = os.fork()
        if child or view is None:
            os.write(outcome, b"%d\n" % (child or os.getpid()))
        if child:
            os._exit(0)
        _wait_for_parent(waiting)
        if view is not None:
            if host is None:
                enter_as_program(view)
            _reopen_null()
            confine(alone=host is None)
        _run(message)
    except _NoProgram as error:
        _report(outcome, _NOT_FOUND, error.strerror or str(error))
    except OSError as error:
        _report(outcome, _NOT_EXECUTABLE, error.strerror or str(error))
    except Exception as error:  # noqa: BLE001 - also a mistake of ours must have words
        _report(outcome, _NOT_EXECUTABLE, str(error))
    finally:
        os._exit(_NOT_EXECUTABLE)


def import_nothing_more() -> None:
    """Soon, every path leads to files of the container. Python would load modules from them into
    this process, which has more rights than the container, and a copy of the launcher's memory.
    What is needed later is imported at the top of these files; what is not fails here."""
    sys.meta_path.clear()
    sys.path.clear()
    sys.path_hooks.clear()


def enter_as_program(view: View) -> None:
    """Returns in a child; this process becomes the container's init."""
    os.setsid()
    enter(view)
    init, program = socket.socketpair()
    if child := os.fork():
        init.close()
        follow(program)
        use_no_capabilities()
        gain_nothing()
        _reap_until_end_of(child)
    program.close()
    with init:
        lock(view, init)


def _reopen_null() -> None:
    """Through the container's own mount: by a descriptor from outside, root could change the
    permissions of the machine's file. The container may have put anything in its place; then
    standard input is a pipe that has ended."""
    for number in range(3):
        if _is_null(number):
            mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
            own = -1
            with contextlib.suppress(OSError):
                own = os.open(os.devnull, mode | os.O_NONBLOCK | os.O_NOFOLLOW)
            if own >= 0 and not _is_null(own):
                os.close(own)
                own = -1
            if own < 0:
                own, other = os.pipe()
                os.close(other)
            os.set_blocking(own, True)
            os.dup2(own, number)
            os.close(own)


def _is_null(descriptor: int) -> bool:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3)


def _refuse_nul(message: Message) -> None:
    """The kernel takes strings up to a NUL byte. In objects of Kubernetes, NUL is a character like
    others."""
    for name, text in message["env"].items():
        if "\0" in name + text:
            raise ValueError(f"environment variable {name!r} contains a NUL byte")
    for part in message["argv"]:
        if "\0" in part:
            raise ValueError(f"argument {part!r} contains a NUL byte")


def _report(outcome: int, code: int, text: str) -> None:
    """In one line: another one would be taken for a pid."""
    os.write(outcome, f"{code} {' '.join(text.split())}".encode(errors="replace"))


def _run(message: Message) -> None:
    os.setsid()
    if message["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _go_to(message["cwd"])
    reset_signals()
    try:
        os.execvpe(message["argv"][0], message["argv"], message["env"])
    except FileNotFoundError as error:
        raise _NoProgram(error.errno, error.strerror) from None


def reset_signals() -> None:
    """What a process ignores or blocks, its children ignore or block, also across exec: a program
    could not be stopped by SIGTERM, and after nohup not be hung up. Our own parents, too, may have
    left us anything."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError):  # the C library keeps some for itself
            signal.signal(number, signal.SIG_DFL)


def _wait_for_parent(waiting: int) -> None:
    """Waits until the launcher is the parent, and then asks the kernel to kill this process with
    it."""
    said = os.read(waiting, 1)
    die_with_parent(signal.SIGKILL)
    poll = select.poll()
    poll.register(waiting, 0)
    # The launcher may have died before prctl took effect, or have given up this start: then the
    # other end is closed.
    if not said or poll.poll(0):
        os._exit(_NOT_EXECUTABLE)


def _reap_until_end_of(program: int) -> None:
    """The container's init, process 1 of its process namespace. When it ends, the kernel kills all
    processes of the container. Processes inside cannot kill it: the kernel drops signals to process
    1 for which it has no handler. Does not return."""
    reset_signals()
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
    paths = {key: tuple(given[key]) for key in ("needed", "hidden", "device_files")}
    return View(**{**given, "binds": binds, **paths})


def _close_all_but(kept: set[int]) -> None:
    for before, after in pairwise((2, *sorted(kept - {0, 1, 2}), _OPEN_FILES)):
        os.closerange(before + 1, after)


def _take_descriptors(descriptors: list[int]) -> None:
    """Makes them 0, 1, 2 and so on. They are moved to high numbers first, so that none is
    overwritten before it is copied."""
    aside = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for fd in descriptors]
    for number, fd in enumerate(aside):
        os.dup2(fd, number)


def _set_limits() -> None:
    os.umask(0o022)
    # No core files. One byte, and not none: with 0, the kernel would still call a program of the
    # machine that takes cores (core_pattern), outside of the container.
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
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
