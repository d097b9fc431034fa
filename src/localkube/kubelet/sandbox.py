"""A container's own view of the machine, made of user and mount namespaces. Linux.

No privileges are needed: the user is root inside, and an ordinary user outside. The container sees
the system directories of the machine read-only, its own /tmp, /dev and home, and its volumes at
their mount paths. It does not see the homes of people, nor the cluster's own files. `enter` is
called in a new process right before the program starts, because it cannot be undone.

Links are resolved first, as the program would follow them (/var/run is /run). A directory that has
both entries of the machine and a mount of ours in it (/run, with /run/secrets) is a new directory,
into which each entry of the machine is bound. A mount point cannot be made in the machine's own
directory, which is read-only.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

_NEWNS, _NEWUTS, _NEWUSER, _NEWPID = 0x00020000, 0x04000000, 0x10000000, 0x20000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _REC, _PRIVATE = 32, 4096, 16384, 1 << 18
_DETACH = 2
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# pivot_root has no wrapper in libc.
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

# Never shown: the files of people, and scratch space of others.
_HIDDEN = frozenset({"/home", "/root", "/tmp", "/mnt", "/media", "/dev", "/boot", "/lost+found"})
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_TERMINALS = ("ptmx", "pts")
_NAMESPACES = ("user", "pid", "uts", "mnt")  # user first: it gives the right to join the others
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}


class Bind(NamedTuple):
    source: str
    target: str  # absolute, in the container
    read_only: bool = False


class View(NamedTuple):
    """What the container sees."""

    root: str  # an empty directory; becomes /
    hostname: str
    uid: int
    gid: int
    binds: tuple[Bind, ...]
    needed: tuple[str, ...] = ()  # paths of the machine that are shown even below hidden ones
    hidden: tuple[str, ...] = ()  # real paths that are never shown
    device_files: tuple[str, ...] = ()  # further names below /dev


# The new directories, as nested names.
_Tree = dict[str, "_Tree"]


def leave(view: View) -> None:
    """Gives this process new namespaces; its next child is process 1 of the new process namespace.
    Raises OSError if the kernel does not allow it."""
    # Before unshare: without maps, both are the overflow id (65534) after it.
    uid, gid = os.getuid(), os.getgid()
    _unshare(_NEWUSER | _NEWNS | _NEWUTS | _NEWPID)
    # The kernel accepts a gid_map of an unprivileged user only after setgroups is denied.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{view.uid} {uid} 1")
    _write("/proc/self/gid_map", f"{view.gid} {gid} 1")


def join(pid: int) -> None:
    """Moves this process into the namespaces of `pid`; into its process namespace goes only the
    next child."""
    # All of them before the first setns, which changes what this process may open.
    places = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]
    for place in places:
        _call(_libc().setns(place, 0), "setns")


def enter(view: View) -> None:
    """Makes the view, in a child of the process that called `leave`. Raises OSError.

    The order matters. Private first, so that no mount reaches the machine. The new root is bound
    onto itself, because pivot_root needs a mount. Then the machine's directories, then devices,
    then our binds, the shorter paths first: a mount on /data would hide an earlier one on
    /data/models."""
    _mount("", "/", _REC | _PRIVATE)
    _mount(view.root, view.root, _BIND)
    binds = [bind._replace(target=os.path.realpath(bind.target)) for bind in view.binds]
    hidden = _HIDDEN | set(view.hidden)
    needed = {*view.needed, *map(os.path.realpath, view.needed)}
    binds += [Bind(path, path, True) for path in needed if _is_hidden(path, hidden)]
    # A directory with something hidden in it is a new one without it. Covering it with a mount
    # would not do: a program that is root in its namespace could unmount the cover.
    _fill(view.root, "/", _tree([*(bind.target for bind in binds), *view.hidden]), hidden)
    _devices(view.root, view.device_files)
    for bind in sorted(binds, key=lambda bind: bind.target.count("/")):
        _bind(bind, view.root)
    os.chdir(view.root)
    _pivot()
    # 64 bytes is the kernel's limit for host names.
    name = os.fsencode(view.hostname)[:64]
    _call(_libc().sethostname(name, len(name)), "sethostname")


def die_with_parent(number: int) -> None:
    """The kernel sends this process the signal when its parent (the thread) ends."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def become_subreaper() -> None:
    """Orphaned descendants of this process become its children."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _is_hidden(path: str, hidden: Collection[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in hidden)


def _tree(targets: Iterable[str]) -> _Tree:
    root: _Tree = {}
    for target in targets:
        place = root
        for name in target.strip("/").split("/")[:-1]:
            place = place.setdefault(name, {})
    return root


def _fill(root: str, directory: str, tree: Mapping[str, _Tree], hidden: Collection[str]) -> None:
    """Fills `directory` of the new root: binds the machine's entries, and makes the directories in
    which our mounts will be."""
    for name in () if _is_hidden(directory, hidden) else _names(directory):
        host = os.path.join(directory, name)
        if name not in tree and host not in hidden:
            _show(host, root + host)
    for name, below in tree.items():
        place = os.path.join(directory, name)
        os.makedirs(root + place, exist_ok=True)
        _fill(root, place, below, hidden)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:  # missing, or no permission
        return []


def _show(host: str, place: str) -> None:
    """Binds one entry of the machine, read-only. An entry that cannot be bound is left out."""
    try:
        mode = os.lstat(host).st_mode
        if stat.S_ISLNK(mode):
            if not os.path.lexists(place):
                os.symlink(os.readlink(host), place)
            return
        _make_place(host, place)
        if host != "/proc" or not _mount_proc(place):
            _mount(host, place, _BIND | _REC)
        if host not in ("/proc", "/sys"):  # the kernel protects these itself
            _make_read_only(place)
    except OSError:
        return


def _mount_proc(place: str) -> bool:
    """Mounts /proc of the container's own processes. False: the kernel refuses it, because parts of
    the machine's /proc are covered (as they are inside Docker)."""
    flags = ctypes.c_ulong(_NOSUID | _NODEV | _NOEXEC)
    return bool(_libc().mount(b"proc", os.fsencode(place), b"proc", flags, None) == 0)


def _mount_terminals(place: str) -> bool:
    """Mounts /dev/pts of the container's own terminals. With that of the machine, programs could
    open no terminals, and could write to those of people. False: the kernel refuses it."""
    os.makedirs(place, exist_ok=True)
    flags = ctypes.c_ulong(_NOSUID | _NOEXEC)
    options = b"newinstance,ptmxmode=0666,mode=0620"
    return bool(_libc().mount(b"devpts", os.fsencode(place), b"devpts", flags, options) == 0)


def _make_place(source: str, place: str) -> None:
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    elif not os.path.lexists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))


def _devices(root: str, more: Sequence[str]) -> None:
    os.makedirs(f"{root}/dev/shm", exist_ok=True)
    own = _mount_terminals(f"{root}/dev/pts")
    links = _LINKS | ({"ptmx": "pts/ptmx"} if own else {})
    if os.isatty(0):  # a terminal of the machine, which is in no directory of the container
        _make_place(os.ttyname(0), f"{root}/dev/console")
        _mount(os.ttyname(0), f"{root}/dev/console", _BIND)
    for name in (*_DEVICES, *(() if own else _TERMINALS), *more):
        if os.path.lexists(f"/dev/{name}") and not os.path.islink(f"/dev/{name}"):
            _make_place(f"/dev/{name}", f"{root}/dev/{name}")
            _mount(f"/dev/{name}", f"{root}/dev/{name}", _BIND | _REC)
    for name, target in links.items():
        if not os.path.lexists(f"{root}/dev/{name}"):
            os.symlink(target, f"{root}/dev/{name}")


def _bind(bind: Bind, root: str) -> None:
    place = root + bind.target
    _make_place(bind.source, place)
    _mount(bind.source, place, _BIND | _REC)
    if bind.read_only:
        _make_read_only(place)


def _make_read_only(place: str) -> None:
    attributes = (ctypes.c_uint64 * 4)(_RDONLY, 0, 0, 0)
    done = _libc().syscall(
        _SYS_MOUNT_SETATTR,
        _AT_FDCWD,
        os.fsencode(place),
        _AT_RECURSIVE,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )
    if done == 0:
        return
    if ctypes.get_errno() != errno.ENOSYS:
        _call(done, f"mount_setattr {place}")
    # Before Linux 5.12: this mount only, not those below it. Its present flags must be repeated, or
    # the kernel refuses the remount.
    flags = os.statvfs(place).f_flag & (_NOSUID | _NODEV | _NOEXEC)
    _mount("", place, _BIND | _REMOUNT | _RDONLY | flags)


def _pivot() -> None:
    """Makes the current directory the root, and unmounts the old root."""
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, "pivot_root is not known here")
    # With the same directory twice, the old root is mounted over the new one, so that no directory
    # has to be made for it. umount2 then takes the old root away.
    _call(_libc().syscall(number, b".", b"."), "pivot_root")
    _call(_libc().umount2(b".", _DETACH), "umount2")
    os.chdir("/")


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _unshare(flags: int) -> None:
    _call(_libc().unshare(flags), "unshare")


def _mount(source: str, target: str, flags: int) -> None:
    done = _libc().mount(
        os.fsencode(source) or None, os.fsencode(target), None, ctypes.c_ulong(flags), None
    )
    _call(done, f"mount {target}")


def _call(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
