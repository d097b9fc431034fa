"""What a container sees of the machine: a short list of system directories, read-only, a /proc of
its own processes, and a few devices.

A directory that has both entries of the machine and a mount of ours in it (/etc, with /etc/gear) is
a new directory, into which each entry of the machine is bound. A mount point cannot be made in the
machine's own directory, which is read-only.

Everything in the new root is made by descriptor (beneath.py): a program may have used this root
before, and have left links in it.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from os.path import join, normpath

from localkube.kubelet.beneath import make_beneath, make_in, open_beneath, opened, path_of
from localkube.kubelet.mounts import NODEV, NOEXEC, NOSUID, RDONLY, bind, mount

# Shown if they exist. Beside these, directories whose name begins with lib.
_SHOWN = (
    *("/usr", "/bin", "/sbin", "/etc", "/nix/store", "/gnu/store"),
    *("/var/lib/dpkg", "/var/lib/rpm", "/var/lib/ca-certificates", "/var/cache/fontconfig"),
    # Processors, memory and cards; not the cgroups, firmware and debugging of the machine.
    *("/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/kernel/mm"),
    "/sys/module",
)
# Where these lead is shown, too: /etc/resolv.conf is often a link into /run.
_FOLLOWED = ("/etc/resolv.conf", "/etc/hosts", "/etc/localtime")
_OWN_DIRECTORIES = ("run/lock", "var/cache", "var/lib", "var/log", "var/tmp", "dev/shm", "tmp")
_FOR_EVERYBODY = ("var/tmp", "dev/shm", "run/lock")
_OWN_LINKS = {"/var/run": "/run", "/var/lock": "/run/lock"}
# The user of the machine may be root. Then files here obey him, capabilities or not.
_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
_MASKED = (
    *("acpi", "asound", "kcore", "keys", "key-users", "kmsg", "latency_stats", "sched_debug"),
    *("scsi", "timer_list", "timer_stats"),
)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_SYSTEM = RDONLY | NOSUID | NODEV
_MOST_LINKS = 40

_Tree = dict[str, "_Tree"]  # the new directories, as nested names


class Machine:
    """Which paths of the machine are shown: those below `_SHOWN` and below what is needed besides,
    but not those below a hidden one. Of two that contain each other, the inner one decides."""

    def __init__(self, hidden: Iterable[str], needed: Iterable[str]) -> None:
        libraries = (f"/{name}" for name in _names("/") if name.startswith("lib"))
        wanted = (*needed, *_FOLLOWED)
        every = (*_SHOWN, *libraries, *wanted, *map(os.path.realpath, wanted))
        self.hidden = frozenset(hidden)
        self.shown = frozenset(path for path in every if os.path.lexists(path))
        self.shown = frozenset(p for p in self.shown if not self.shows(os.path.dirname(p)))

    def shows(self, path: str) -> bool:
        while path not in self.hidden and path != "/":
            if path in self.shown:
                return True
            path = os.path.dirname(path)
        return False

    def entries(self, directory: str) -> Iterable[str]:
        """The names in it that may be shown."""
        if self.shows(directory):
            return _names(directory)
        return [os.path.basename(p) for p in self.shown if os.path.dirname(p) == directory]

    def without(self, targets: Collection[str]) -> set[str]:
        """Takes out what is below one of these mounts of ours, which would cover it."""
        covered = {path for path in self.shown if any(path.startswith(f"{t}/") for t in targets)}
        self.shown -= covered
        return covered

    def settled(self, target: str) -> str:
        """The target of a mount without links of the system's own directories (/var/run is /run):
        these decide which directories have to be new ones. Links elsewhere are followed when the
        mount is made, in the container's root."""
        left = normpath(f"/{target}").strip("/").split("/")
        path = "/"
        for _ in range(_MOST_LINKS * len(left)):
            if not left:
                return path
            here = join(path, left.pop(0))
            link = self._link(here)
            if link is None:
                path = here
            else:
                path = "/"
                whole = normpath(join(os.path.dirname(here), link)).strip("/").split("/")
                left = [*(part for part in whole if part), *left]
        raise OSError(errno.ELOOP, f"{target}: {os.strerror(errno.ELOOP)}")

    def _link(self, path: str) -> str | None:
        if path in _OWN_LINKS:
            return _OWN_LINKS[path]
        if self.shows(path) and not path.startswith("/sys/"):
            with contextlib.suppress(OSError):
                return os.readlink(path)
        return None


@lru_cache(maxsize=8)
def machine(hidden: tuple[str, ...], needed: tuple[str, ...]) -> Machine:
    """Asked by the launcher first: it is the same for all containers."""
    return Machine(hidden, needed)


def make_system(root: int, shown: Machine, targets: Iterable[str]) -> None:
    """Fills the new root: with the machine's entries, and with the directories in which our mounts
    will be."""
    # A directory with something hidden in it is a new one without it.
    _fill(root, "/", _tree((*targets, *shown.shown, *shown.hidden)), shown)
    for path in _OWN_DIRECTORIES:
        os.close(make_beneath(root, path, as_root=True))
    for path in _FOR_EVERYBODY:
        with opened(open_beneath(root, path, as_root=True)) as place:
            os.chmod(path_of(place), 0o1777)
    with opened(open_beneath(root, "var", as_root=True)) as place:
        for link, to in _OWN_LINKS.items():
            with contextlib.suppress(FileExistsError):
                os.symlink(to, os.path.basename(link), dir_fd=place)
    for path in private_files():
        _mask(root, path)


def _tree(targets: Iterable[str]) -> _Tree:
    root: _Tree = {}
    for target in targets:
        place = root
        for name in target.strip("/").split("/")[:-1]:
            place = place.setdefault(name, {})
    return root


def _fill(place: int, directory: str, tree: Mapping[str, _Tree], shown: Machine) -> None:
    for name in shown.entries(directory):
        host = join(directory, name)
        if name not in tree and host not in shown.hidden:
            _show(host, place, name)
    for name, below in tree.items():
        with opened(make_in(place, name)) as inner:
            _fill(inner, join(directory, name), below, shown)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:  # missing, or no permission
        return []


def _show(host: str, place: int, name: str) -> None:
    """Binds one entry of the machine, read-only. An entry that cannot be bound is left out."""
    source = made = -1
    try:
        source = os.open(host, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        mode = os.fstat(source).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink("", dir_fd=source), name, dir_fd=place)
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):  # no sockets, which are open both ways
            made = make_in(place, name, is_file=stat.S_ISREG(mode))
            bind(source, made, _SYSTEM, lambda: open_beneath(place, name, links=False))
    except OSError:
        pass
    finally:  # not `opened`: there are hundreds of them
        for descriptor in (source, made):
            if descriptor >= 0:
                os.close(descriptor)


@cache
def private_files() -> tuple[str, ...]:
    """What in /etc others may not read: passwords and keys. They are masked where the user of the
    machine is root, whose files these are. To be called first in a process that is in no user
    namespace, where everybody is root."""
    if os.getuid() != 0:
        return ()
    found: list[str] = []
    for parent, names, files in os.walk("/etc"):
        for name in (*names, *files):
            path = join(parent, name)
            with contextlib.suppress(OSError):
                mode = os.lstat(path).st_mode
                is_open = stat.S_ISLNK(mode) or mode & stat.S_IROTH
                if not is_open:
                    found.append(path)
        names[:] = [name for name in names if join(parent, name) not in found]
    return tuple(found)


def make_proc(root: int) -> None:
    with opened(make_beneath(root, "proc", as_root=True)) as place:
        try:
            mount("proc", path_of(place), NOSUID | NODEV | NOEXEC, "proc")
        except OSError:
            # Parts of the machine's /proc are covered, as they are inside of Docker. Then the
            # container sees that the machine's processes exist, but cannot look into them.
            with opened(os.open("/proc", os.O_PATH | os.O_CLOEXEC)) as host:
                bind(host, place, NOSUID | NODEV | NOEXEC, lambda: _again(root, "proc"))
    for name in _READ_ONLY:
        with contextlib.suppress(FileNotFoundError):
            _make_read_only(root, f"proc/{name}")
    for name in _MASKED:
        _mask(root, f"proc/{name}")
    _mask(root, "sys/devices/virtual/powercap")  # tells what others compute


def _again(root: int, path: str) -> int:
    return open_beneath(root, path, as_root=True)


def _make_read_only(root: int, path: str) -> None:
    with opened(_again(root, path)) as place:
        bind(place, place, RDONLY, lambda: _again(root, path))


def _mask(root: int, path: str) -> None:
    """Covers a file or directory with an empty one."""
    try:
        place = open_beneath(root, path, as_root=True, links=False)
    except OSError:  # this machine has none
        return
    with opened(place):
        if stat.S_ISDIR(os.fstat(place).st_mode):
            options = "size=0k,mode=555"
            mount("tmpfs", path_of(place), _SYSTEM | NOEXEC, "tmpfs", options)
            return
        with opened(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)) as nothing:
            bind(nothing, place, RDONLY | NOSUID | NOEXEC, lambda: _again(root, path))


def make_devices(root: int, more: Sequence[str]) -> None:
    own = _mount_terminals(root)
    if os.isatty(0):  # a terminal of the machine, which is in no directory of the container
        _show_device(root, os.ttyname(0), "console")
    for name in (*_DEVICES, *more):
        if os.path.lexists(f"/dev/{name}") and not os.path.islink(f"/dev/{name}"):
            _show_device(root, f"/dev/{name}", name)
    links = _DEVICE_LINKS | ({"ptmx": "pts/ptmx"} if own else {})
    with opened(open_beneath(root, "dev", as_root=True)) as place:
        for name, target in links.items():
            with contextlib.suppress(FileExistsError):
                os.symlink(target, name, dir_fd=place)


def _show_device(root: int, host: str, name: str) -> None:
    """Read-only concerns the file and not the device: a program that is the machine's root must not
    change the file's permissions."""
    is_file = not os.path.isdir(host)
    with (
        opened(os.open(host, os.O_PATH | os.O_CLOEXEC)) as source,
        opened(make_beneath(root, f"dev/{name}", is_file=is_file, as_root=True)) as place,
    ):
        bind(source, place, RDONLY | NOSUID, lambda: _again(root, f"dev/{name}"))


def _mount_terminals(root: int) -> bool:
    """Mounts /dev/pts of the container's own terminals. With that of the machine, programs could
    write to those of people. False: the kernel refuses it, and programs can open no terminals."""
    with opened(make_beneath(root, "dev/pts", as_root=True)) as place:
        options = "newinstance,ptmxmode=0666,mode=0620"
        try:
            mount("devpts", path_of(place), NOSUID | NOEXEC, "devpts", options)
        except OSError:
            return False
    return True
