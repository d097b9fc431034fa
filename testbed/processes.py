"""Child processes that cannot outlive their parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
# Below those of NodePorts, and below those that Linux gives to outgoing connections: these take a
# port that was free when somebody looked before he uses it.
_PORTS = range(10_000, 30_000)
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Child:
    """One program in its own process group, its output in a file."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Linux kills it when the starting thread ends, even by SIGKILL; elsewhere stop()
                # is what ends it.
                preexec_fn=_die_with_parent if _LIBC else None,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, patience: float = 5.0) -> None:
        """SIGTERM to the whole group, SIGKILL to what is left of it."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _die_with_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Different free ports of the loopback, in no order that others could have drawn, too."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def wait_until(ready: Callable[[], bool], child: Child, seconds: float) -> None:
    """Polls until ready() says so; an early end of the child is told at once, with its log."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not child.running:
            raise RuntimeError(f"{child.name} ended while starting:\n{child.tail()}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{child.name}: not ready after {seconds:.0f} s:\n{child.tail()}")
        time.sleep(0.05)


def answers(url: str, trust: ssl.SSLContext | None = None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5, context=trust) as answer:
            return bool(answer.status == 200)
    except OSError:  # urllib's own errors are
        return False
