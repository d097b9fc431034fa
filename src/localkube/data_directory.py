"""The directory that a cluster keeps its keys, tokens and database in: private, and for one server.

    DataDirectoryError
      NotPrivate       somebody else could read or replace what lies here
      NotUsable        it cannot be made or looked into
      AlreadyRunning   another server has the directory

Each message says what was found, what is wanted, and the command that mends it.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shlex
import stat
import time
from pathlib import Path
from types import TracebackType

_PRIVATE_DIRECTORY = 0o700
_PRIVATE_FILE = 0o600
_OTHERS = 0o077
_LOCK = "lock"
# Long enough for somebody who only looks whether the lock is held (`running_pid`).
_LOCK_ATTEMPTS = 5
_LOCK_PAUSE_S = 0.02
_NOT_OURS = -1  # the descriptor of a lock that a child has


class DataDirectoryError(Exception):
    pass


class NotPrivate(DataDirectoryError):
    pass


class NotUsable(DataDirectoryError):
    def __init__(self, directory: Path, error: OSError) -> None:
        super().__init__(
            f"{directory} cannot be the data directory: wanted one that you may make and write to, "
            f"found: {error.strerror} ({error.filename}). Choose another directory."
        )


class AlreadyRunning(DataDirectoryError):
    def __init__(self, directory: Path, pid: int | None) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(
            f"{directory} is in use by {who}: one server at a time may have a data directory. "
            "Stop it, or choose another directory."
        )
        self.pid = pid


def pods_directory(directory: Path) -> Path:
    """Where the files of nodes and pods are."""
    return directory / "pods"


def restrict_umask() -> None:
    """Whatever this process makes is for its user alone. For the server's own process only."""
    os.umask(_OTHERS)


def make_data_directory(directory: Path) -> Path:
    """The directory, made if need be, with its permissions checked. Raises DataDirectoryError."""
    try:
        return _prepared(directory)
    except OSError as error:
        raise NotUsable(directory, error) from error


def _prepared(directory: Path) -> Path:
    above = Path(os.path.abspath(directory)).parent
    above.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_DIRECTORY)
    path = Path(os.path.realpath(above)) / directory.name
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _PRIVATE_DIRECTORY)
    _verify_directory(path)
    for above in path.parents:
        _verify_above(path, above)
    return path


def _verify_directory(path: Path) -> None:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        target = os.path.realpath(path)
        mend = f"use {shlex.quote(target)} itself"
        raise _not_private(path, "a directory", f"a symbolic link to {target}", mend)
    if not stat.S_ISDIR(found.st_mode):
        raise _not_private(path, "a directory", "something else", "choose another directory")
    _verify_owner(path, found)
    _verify_mode(path, found, _PRIVATE_DIRECTORY)


def _verify_above(path: Path, above: Path) -> None:
    """Whoever may rename in a directory above could put another one in the place of ours."""
    mode = os.stat(above).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        wanted = "a directory above that not everybody may write to"
        mend = f"chmod o-w {shlex.quote(str(above))}"
        raise _not_private(path, wanted, f"mode {stat.S_IMODE(mode):04o} on {above}", mend)


def _verify_owner(path: Path, found: os.stat_result) -> None:
    user = os.geteuid()
    if found.st_uid != user:
        mend = f"sudo chown -R {user} {shlex.quote(str(path))}"
        raise _not_private(path, f"owner {user}", f"owner {found.st_uid}", mend)


def _verify_mode(path: Path, found: os.stat_result, wanted: int) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if mode & _OTHERS:
        mend = f"chmod {wanted:o} {shlex.quote(str(path))}"
        raise _not_private(path, f"mode {wanted:04o}", f"mode {mode:04o}", mend)


def _not_private(path: Path, wanted: str, found: str, mend: str) -> NotPrivate:
    return NotPrivate(f"{path} is not private: wanted {wanted}, found {found}. To mend it: {mend}")


def read_private(path: Path) -> bytes | None:
    """What the file holds, or None if there is none. Refuses one that is not ours alone."""
    try:
        # O_NONBLOCK, because opening a FIFO would otherwise wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        mend = f"rm {shlex.quote(str(path))}"
        raise _not_private(path, "a file", "a symbolic link", mend) from None
    try:
        # Of the open file, not of the path, which may lead to another file by now.
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            mend = f"rm -r {shlex.quote(str(path))}"
            raise _not_private(path, "a file", "something else", mend)
        _verify_owner(path, found)
        _verify_mode(path, found, _PRIVATE_FILE)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def write_private(path: Path, data: bytes) -> None:
    """Atomic and durable: there is the old content or the new, and nobody else can read it."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(new, flags, _PRIVATE_FILE)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.rename(new, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Lock:
    """Holds a data directory until closed, or until the process ends, however it ends."""

    def __init__(
        self, directory: Path, *, inherited: int | None = None, for_child: bool = False
    ) -> None:
        """`for_child`: the lock is for a process that we are about to start, and names nobody
        until `hand_over`. `inherited`: we are that process, and this is the lock's descriptor.
        Raises AlreadyRunning."""
        descriptor = _open_lock(directory)
        if inherited is not None:
            _verify_same(directory, descriptor, inherited)
            os.close(descriptor)
            os.set_inheritable(inherited, False)  # for us alone, not for what we start
            descriptor = inherited
        elif not _take(descriptor):
            pid = _written_pid(descriptor)
            os.close(descriptor)
            raise AlreadyRunning(directory, pid)
        self.descriptor = descriptor
        self._write(None if for_child else os.getpid())

    def hand_over(self, pid: int) -> None:
        """A child has the descriptor, too. From now on the lock is its own."""
        self._write(pid)
        os.close(self.descriptor)
        self.descriptor = _NOT_OURS

    def _write(self, pid: int | None) -> None:
        os.ftruncate(self.descriptor, 0)
        if pid is not None:
            os.pwrite(self.descriptor, b"%d\n" % pid, 0)

    def close(self) -> None:
        if self.descriptor == _NOT_OURS:
            return
        # The file stays: to unlink it would let two servers lock two files of one name.
        os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def running_pid(directory: Path) -> int | None:
    """The process that holds the directory's lock; None if none does."""
    try:
        descriptor = os.open(directory / _LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        # Shared, so that several processes may look at the same time.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written_pid(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _open_lock(directory: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    return os.open(directory / _LOCK, flags, _PRIVATE_FILE)


def _verify_same(directory: Path, found: int, inherited: int) -> None:
    """The directory may have been deleted and made again meanwhile."""
    if not os.path.samestat(os.fstat(found), os.fstat(inherited)):
        os.close(found)
        raise AlreadyRunning(directory, None)


def _take(descriptor: int) -> bool:
    for attempt in range(_LOCK_ATTEMPTS):
        if attempt:
            time.sleep(_LOCK_PAUSE_S)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def _written_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
