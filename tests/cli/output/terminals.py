"""Runs the command in a pseudo-terminal, and says what one would see in it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LIMIT_S = 60
COMMAND = (sys.executable, "-m", "gpupool")
_PART = re.compile(
    r"\x1b\]8;;(?P<link>.*?)\x1b\\|\x1b\[(?P<number>\d*)(?P<do>[AKJHm])|(?P<char>.)", re.DOTALL
)


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process = process
        self.raw = ""
        self._end = end

    def until(self, is_so: Callable[["Terminal"], bool]) -> None:
        """Reads what comes, until the terminal shows what is wanted."""
        deadline = time.monotonic() + LIMIT_S
        while not is_so(self):
            left = deadline - time.monotonic()
            assert left > 0, f"never came; the screen is\n{self.screen}"
            assert self._read(left), f"it has ended; the screen is\n{self.screen}"

    def rest(self) -> int:
        """Reads to the end; returns the exit code."""
        while self._read(LIMIT_S):
            pass
        return self.process.wait(LIMIT_S)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.rest()

    def resize(self, columns: int, rows: int = 24) -> None:
        set_size(self._end, columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def _read(self, limit_s: float) -> bool:
        if not select.select([self._end], [], [], limit_s)[0]:
            return False
        try:
            got = os.read(self._end, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.raw += got.decode()
        return bool(got)

    @property
    def screen(self) -> list[str]:
        return screen_after(self.raw)


def screen_after(raw: str) -> list[str]:
    """The lines, as a terminal that is wide and high enough shows them; without colours."""
    lines, row, column = [""], 0, 0
    for part in _PART.finditer(raw.replace("\r\n", "\n")):
        match part["do"], part["char"]:
            case "A", _:
                row = max(0, row - int(part["number"] or 1))
            case "K", _:
                lines[row] = lines[row][:column]
            case "J", _ if part["number"] == "2":
                lines = [""]
            case "J", _:
                lines[row] = lines[row][:column]
                del lines[row + 1 :]
            case "H", _:
                row, column = 0, 0
            case _, "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            case _, "\r":
                column = 0
            case _, str(char):
                lines[row] = lines[row][:column].ljust(column) + char + lines[row][column + 1 :]
                column += 1
            case _:  # a colour or a link
                pass
    return lines


def set_size(end: int, columns: int, rows: int) -> None:
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def terminal(*arguments: object, columns: int, rows: int = 24) -> Iterator[Terminal]:
    end, inside = pty.openpty()
    set_size(end, columns, rows)
    sized = ("COLUMNS", "LINES")  # they would count more than the terminal itself
    settings = {"TERM": "xterm"} | {k: v for k, v in os.environ.items() if k not in sized}
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=inside, stdout=inside, stderr=inside, env=settings
    ) as process:
        os.close(inside)
        try:
            yield Terminal(process, end)
        finally:
            process.kill()
            os.close(end)
