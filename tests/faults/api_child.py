"""An API server in a process of its own, to be killed, stopped and started again at will."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parent.parent.parent
TOKEN = "gpupool_of-the-tests-of-faults"
_PATIENCE_S = 30.0


class Refused(Exception):
    """The server did not start, and says why."""


class Nursery:
    """Starts servers; see nursery.py."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._early: dict[int, dict[str, Any]] = {}  # reports of servers nobody waited for yet

    def fork(self, job: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(job) + b"\n")
        self._process.stdin.flush()
        while "forked" not in (report := self._report()):
            self._early[report["pid"]] = report
        pid: int = report["forked"]
        return pid

    def wait(self, pid: int) -> dict[str, Any]:
        """What the server says once it is ready."""
        while pid not in self._early:
            report = self._report()
            self._early[report["pid"]] = report
        return self._early.pop(pid)

    def _report(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the nursery has ended"
        report: dict[str, Any] = orjson.loads(line)
        return report

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(_PATIENCE_S)


class ApiChild:
    """One data directory, and the server that has it now."""

    def __init__(self, nursery: Nursery, directory: Path) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        directory.chmod(0o700)
        self.directory = directory
        self.log = directory.with_name(f"{directory.name}.log")
        self.pid = 0
        self.port = 0
        self._nursery = nursery

    def start(self) -> None:
        """Raises Refused."""
        self.begin()
        report = self._nursery.wait(self.pid)
        if "refused" in report:
            self.wait_gone()
            raise Refused(report["refused"])
        self.port = report["port"]

    def begin(self) -> None:
        """Without waiting until it is ready."""
        job = {"directory": str(self.directory), "log": str(self.log), "token": TOKEN}
        self.pid = self._nursery.fork(job)

    def end(self, number: signal.Signals) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            said = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise AssertionError(f"the server has ended by itself: {said}") from None
        self.wait_gone()

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def wait_gone(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while Path(f"/proc/{self.pid}").exists():
            assert time.monotonic() < deadline, "the server does not end"
            time.sleep(0.001)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.directory / "ca-for-tests.crt"))

    def check_log(self) -> None:
        """Whatever was done to it, no code of ours was surprised by it."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        assert "Traceback" not in text, text
        assert "never retrieved" not in text, text

    def memory_mb(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")


@contextmanager
def running(nursery: Nursery, directory: Path) -> Iterator[ApiChild]:
    child = ApiChild(nursery, directory)
    child.start()
    try:
        yield child
    finally:
        if Path(f"/proc/{child.pid}").exists():
            child.end(signal.SIGTERM)
    child.check_log()
