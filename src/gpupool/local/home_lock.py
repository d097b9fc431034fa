"""The lock of a home, which one command has at a time.

The kernel frees it when a process ends, but not when a process is stopped (Ctrl-Z). So whoever
waits says for whom, and gives up in the end. The file has the holder's pid in it.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

_PRIVATE = 0o600
_PAUSE_S = 0.05
_SAY_AFTER_S = 3.0
# A start on a slow machine takes some ten seconds; a stopped process takes for ever.
_GIVE_UP_S = 180.0
_GIVE_UP_ON_STOPPED_S = 10.0
_LONGEST_COMMAND = 100
_PROC = Path("/proc")


class StillHeld(Exception):
    """By another process; the text says by whom, and what to do."""


@contextmanager
def held(path: Path, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Raises StillHeld, OSError. `say` gets one sentence if it takes long; None: it is printed."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
    try:
        _wait(lock, path, say or _print)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def _wait(lock: int, path: Path, say: Callable[[str], None]) -> None:
    began_s, has_said = time.monotonic(), False
    while not _take(lock):
        waited_s = time.monotonic() - began_s
        pid = _holder(lock)
        if waited_s >= _GIVE_UP_S or (waited_s >= _GIVE_UP_ON_STOPPED_S and _is_stopped(pid)):
            raise StillHeld(_words(path, pid))
        if waited_s >= _SAY_AFTER_S and not has_said:
            has_said = True
            say(f"Waiting for {_who(pid)}, which holds {path} ...")
        time.sleep(_PAUSE_S)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _words(path: Path, pid: int | None) -> str:
    found = f"{path} is held by {_who(pid)}: wanted that it ends"
    if pid is None:
        return f"{found}. See who has the file open: fuser {path}"
    if _is_stopped(pid):
        return f"{found}, found it stopped. Let it go on (fg, or kill -CONT {pid}), or end it."
    return f"{found}, found that it still works. Try again later, or end it: kill {pid}"


def _who(pid: int | None) -> str:
    if pid is None:
        return "another process"
    # Whoever started it chose the letters: no new lines, and no commands for a terminal.
    text = _read(f"/proc/{pid}/cmdline")
    command = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return f"process {pid} ({command[:_LONGEST_COMMAND]})" if command else f"process {pid}"


def _is_stopped(pid: int | None) -> bool:
    """Where there is no /proc, nobody is."""
    # The name before the state may have brackets and blanks in it.
    after_name = _read(f"/proc/{pid}/stat").rpartition(")")[2].split() if pid else []
    return bool(after_name) and after_name[0] in ("T", "t")


def _holder(lock: int) -> int | None:
    """None: of a version that wrote no pid, or it has just taken the lock, or it has ended and a
    child of it keeps the lock: then the number may be that of any other process by now."""
    text = os.pread(lock, 32, 0)
    return int(text) if text.isdigit() and _has_open(int(text), os.fstat(lock)) else None


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Also where nobody can see it: without /proc, or of somebody else's process."""
    if not _PROC.exists():
        return True
    try:
        opened = list((_PROC / str(pid) / "fd").iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(_is_same(each, file) for each in opened)


def _is_same(path: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), file)
    except OSError:  # closed meanwhile
        return False


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _print(words: str) -> None:
    click.echo(words, err=True)
