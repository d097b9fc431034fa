"""Runs programs that draw on a terminal, and returns what they have drawn."""

import os
import pty
import select
import time
from collections.abc import Mapping
from pathlib import Path

_TIMEOUT_S = 60


def shown_by(program: Path, *words: str, env: Mapping[str, str], until: bytes) -> bytes:
    """Returns what the program draws until `until` appears, or for a minute; then kills it."""
    pid, terminal = pty.fork()
    if pid == 0:
        size = {"TERM": "xterm", "COLUMNS": "150", "LINES": "50"}
        os.execve(program, [str(program), *words], {**env, **size})
    try:
        return _read_until(terminal, until)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def _read_until(terminal: int, wanted: bytes) -> bytes:
    shown, end = b"", time.monotonic() + _TIMEOUT_S
    while wanted not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # the program has ended
                break
    return shown
