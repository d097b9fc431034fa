"""A container's own view of the machine, and the wall around it. Linux.

No privileges are needed: the user is root inside, and an ordinary user outside. A container has two
user namespaces, one in the other:

    outer   owns the process, IPC, host name and cgroup namespaces. All mounts are made here. Only
            the container's init is in it, with no capabilities.
    inner   owns a copy of the mounts. To the kernel, these come from somebody with more rights, so
            they are locked: nobody inside can unmount one, or make it writable. The programs of
            the container are in it, confined as confine.py says.

    leave    the fork of the launcher   makes the outer namespaces
    enter    its child, the init        makes the view (system_view.py), and goes into it
    lock     its child, the program     makes the inner namespaces
    follow   the init                   joins the inner mounts, so that `join` finds them by its pid
    join     later programs (exec)      go into all of them

A path that a container can change is resolved once, and mounted by descriptor: see beneath.py.
"""

import contextlib
import errno
import fcntl
import os
import socket
import sys
from typing import NamedTuple

from localkube.kubelet import kernel
from localkube.kubelet.beneath import make_beneath, open_beneath, open_steps, open_trusted, opened
from localkube.kubelet.mounts import NODEV, NOSUID, PRIVATE, RDONLY, REC, bind, mount
from localkube.kubelet.system_view import machine, make_devices, make_proc, make_system

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEWUSER, _NEWPID = 0x10000000, 0x20000000
_DETACH = 2
_NS_GET_USERNS = 0xB701  # the user namespace that owns a namespace
_IN_PROC = "it is inside of /proc"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Bind(NamedTuple):
    source: str  # a path that no container can change
    target: str  # absolute, in the container
    read_only: bool = False
    inside: tuple[str, ...] = ()  # paths that one can: each beneath what the one before led to


class View(NamedTuple):
    """What the container sees."""

    root: str  # an empty directory; becomes /
    hostname: str
    uid: int
    gid: int
    binds: tuple[Bind, ...]
    needed: tuple[str, ...] = ()  # paths of the machine that are shown besides the system's
    hidden: tuple[str, ...] = ()  # real paths that are never shown
    device_files: tuple[str, ...] = ()  # further names below /dev


def shield(program: str) -> None:
    """Gives this process namespaces in which this file is mounted read-only; for the user, nothing
    else changes. `program`: a real path. Raises OSError if the kernel does not allow it."""
    uid, gid = os.getuid(), os.getgid()
    _unshare(_NEWUSER | _NEWNS)
    _map_ids((uid, uid), (gid, gid))
    with opened(open_trusted(program)) as file:
        bind(file, file, RDONLY, lambda: open_trusted(program))


def leave(view: View) -> None:
    """Gives this process new namespaces; its next child is process 1 of the new process namespace.
    Raises OSError if the kernel does not allow it."""
    # Before unshare: without maps, both are the overflow id (65534) after it.
    uid, gid = os.getuid(), os.getgid()
    every = _NEWUSER | _NEWNS | _NEWUTS | _NEWPID | _NEWIPC
    try:
        _unshare(every | _NEWCGROUP)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _unshare(every)  # a kernel without cgroup namespaces
    _map_ids((view.uid, uid), (view.gid, gid))


def enter(view: View) -> None:
    """Makes the view, in a child of the process that called `leave`. Raises OSError.

    The order matters. Private first, so that no mount reaches the machine. The new root is bound
    onto itself, because pivot_root needs a mount. Then the machine's directories, then devices,
    then our binds, the shorter paths first: a mount on /data would hide an earlier one on
    /data/models."""
    mount("", "/", REC | PRIVATE)
    # The inner user namespace, and none below it, whatever a program finds to call. The number
    # belongs to the outer one. Where /proc/sys is read-only, the filter of calls has to do.
    with contextlib.suppress(OSError):
        _write("/proc/sys/user/max_user_namespaces", "1")
    with opened(open_trusted(view.root)) as bare:
        bind(bare, bare, NOSUID | NODEV, lambda: open_trusted(view.root))
    shown = machine(view.hidden, view.needed)
    binds = [each._replace(target=shown.settled(each.target)) for each in view.binds]
    covered = shown.without([each.target for each in binds])
    binds += [Bind(path, path, True) for path in covered]
    with opened(open_trusted(view.root)) as root:
        make_system(root, shown, [each.target for each in binds])
        make_proc(root)
        make_devices(root, view.device_files)
        for each in sorted(binds, key=lambda each: each.target.count("/")):
            try:
                _bind(each, root)
            except OSError as error:
                text = f"{each.target} cannot be mounted: {_why(error, each.target)}"
                raise OSError(error.errno, text) from error
        os.chdir(view.root)
        _pivot()
    # 64 bytes is the kernel's limit for host names.
    name = os.fsencode(view.hostname)[:64]
    kernel.function("sethostname", "text size")(name, len(name))


def lock(view: View, init: socket.socket) -> None:
    """The inner namespaces, in a child of the process that called `enter`, which waits in
    `follow`."""
    _unshare(_NEWUSER | _NEWNS)
    _map_ids((view.uid, view.uid), (view.gid, view.gid))
    with opened(os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)) as mounts:
        socket.send_fds(init, [b"m"], [mounts])
    if not init.recv(1):
        raise OSError(errno.ESRCH, "the container's init has ended")


def follow(program: socket.socket) -> None:
    """Joins the mounts of the child that is in `lock`. If the child fails, it reports that."""
    said, descriptors, _, _ = socket.recv_fds(program, 1, 1)
    if said:
        with opened(descriptors[0]) as mounts:
            _setns(mounts)
        program.send(b"g")


def join(pid: int) -> None:
    """Moves this process into the namespaces of the container with this init; into its process
    namespace goes only the next child."""
    with contextlib.ExitStack() as stack:

        def found(descriptor: int) -> int:
            return stack.enter_context(opened(descriptor))

        def of(name: str) -> int:
            return found(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC))

        # All of them before the first setns, which changes what this process may open. The outer
        # user namespace gives the right to join what it owns, the inner one to join its mounts.
        places = [of(name) for name in ("user", "pid", "uts", "ipc")]
        with contextlib.suppress(FileNotFoundError):
            places.append(of("cgroup"))
        mounts = of("mnt")
        inner = found(fcntl.ioctl(mounts, _NS_GET_USERNS))
        for place in (*places, inner, mounts):
            _setns(place)


def die_with_parent(number: int) -> None:
    """The kernel sends this process the signal when its parent (the thread) ends."""
    if sys.platform == "linux":
        kernel.prctl(_PR_SET_PDEATHSIG, number)


def become_subreaper() -> None:
    """Orphaned descendants of this process become its children."""
    if sys.platform == "linux":
        kernel.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _bind(given: Bind, root: int) -> None:
    with opened(open_steps(given.source, given.inside)) as source:
        is_file = not os.path.isdir(f"/proc/self/fd/{source}")

        def again() -> int:
            return open_beneath(root, given.target, as_root=True)

        with opened(make_beneath(root, given.target, is_file=is_file, as_root=True)) as place:
            _refuse_root_and_proc(root, place)
            attributes = NOSUID | NODEV | (RDONLY if given.read_only else 0)
            bind(source, place, attributes, again)


def _refuse_root_and_proc(root: int, place: int) -> None:
    """As the container runtimes do: what programs read there about themselves must be true."""
    if os.path.samestat(os.fstat(root), os.fstat(place)):
        raise OSError(errno.EINVAL, "it is the container's root")
    with opened(open_beneath(root, "proc", as_root=True)) as proc:
        if os.fstat(place).st_dev == os.fstat(proc).st_dev:
            raise OSError(errno.EINVAL, _IN_PROC)


def _why(error: OSError, target: str) -> str:
    # A link of /proc, such as /proc/self/root, is not followed at all.
    return _IN_PROC if target.startswith("/proc/") else error.strerror or str(error)


def _pivot() -> None:
    """Makes the current directory the root, and unmounts the old root."""
    number = kernel.numbered(x86_64=155, aarch64=41)
    if number is None:
        raise OSError(errno.ENOSYS, "pivot_root is not known here")
    # With the same directory twice, the old root is mounted over the new one, so that no directory
    # has to be made for it. umount2 then takes the old root away.
    kernel.system_call(number, "text text")(b".", b".")
    kernel.function("umount2", "text int")(b".", _DETACH)
    os.chdir("/")


def _unshare(flags: int) -> None:
    kernel.function("unshare", "int")(flags)


def _setns(place: int) -> None:
    kernel.function("setns", "int int")(place, 0)


def _map_ids(uid: tuple[int, int], gid: tuple[int, int]) -> None:
    """One user and one group: inside, outside."""
    # The kernel accepts a gid_map of an unprivileged user only after setgroups is denied.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid[0]} {uid[1]} 1")
    _write("/proc/self/gid_map", f"{gid[0]} {gid[1]} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
