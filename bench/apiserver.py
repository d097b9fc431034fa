"""The API server under load: durable POSTs, bindings, lists, watch fan-out, memory, pauses.

The same load goes to a real kube-apiserver with etcd, when its binaries are there. Rates depend on
what else the machine does; CPU per request is the figure to compare.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.pods import bindings, creates, listing
from bench.watchers import fan_out

_HERE = Path(__file__).parent
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pids: Iterable[int]) -> float:
    """What these processes have taken so far, all their threads."""
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / _TICKS
    return total


def memory_mib(pid: int) -> dict[str, float]:
    """Resident; the same with shared pages divided among those who share them; and its own."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kib = {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)}
    private = kib["Private_Clean"] + kib["Private_Dirty"]
    found = {"rss": kib["Rss"], "pss": kib["Pss"], "private": private}
    return {name: round(value / 1024, 1) for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class Served:
    """A server under measurement. Several processes count as one: etcd belongs to its server."""

    pids: tuple[int, ...]
    address: dict[str, Any]  # port, token, ca

    def cpu_s(self) -> float:
        return cpu_s(self.pids)

    def memory_mb(self) -> float:
        total = 0.0
        for pid in self.pids:
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1]) / 1024
        return total

    def load(self, requests: list[tuple[str, str, str]], connections: int) -> dict[str, Any]:
        """Figures of the load, with the server's CPU per request."""
        job = {**self.address, "requests": requests, "connections": connections}
        before = self.cpu_s()
        ran = subprocess.run(
            [sys.executable, str(_HERE / "load.py")],
            input=orjson.dumps(job),
            stdout=subprocess.PIPE,
            check=True,
        )
        figures: dict[str, Any] = orjson.loads(ran.stdout)
        figures["cpu_us"] = (self.cpu_s() - before) / max(figures["requests"], 1) * 1e6
        return figures


@contextmanager
def server() -> Iterator[Served]:
    """Our API server alone: no controllers, no nodes."""
    with tempfile.TemporaryDirectory(prefix="gpupool-bench-") as directory:
        os.chmod(directory, 0o700)
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.api_server", directory], stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            yield Served((process.pid,), orjson.loads(process.stdout.readline()))
        finally:
            process.terminate()
            process.wait()


def measure(served: Served, pods: int) -> dict[str, Any]:
    """The figures that both servers get."""
    names = [f"p{number:05}" for number in range(pods)]
    figures: dict[str, Any] = {"at_rest_mb": served.memory_mb()}
    figures["post_pod"] = served.load(creates(names), 32)
    figures["binding"] = served.load(bindings(names), 32)
    figures["get_pod"] = served.load([("GET", f"{listing('')}/{names[0]}", "")] * pods, 32)
    figures["list_5000"] = served.load([("GET", listing("?limit=5000"), "")] * 40, 2)
    return figures


def measure_ours(pods: int = 10_000, filled_to: int = 60_000) -> dict[str, Any]:
    with server() as served:
        figures = measure(served, pods)
        different = [f"d{number:05}" for number in range(pods // 2)]
        figures["post_different_pods"] = served.load(creates(different, alike=False), 32)
        figures["watch"] = fan_out(served, watchers=10, events=10_000)
        more = [f"q{number:05}" for number in range(filled_to - pods - pods // 2)]
        filled = served.load(creates(more), 8)
        figures["filled_to"] = filled_to
        figures["filled_mb"] = served.memory_mb()
        figures["longest_ms_while_filling"] = filled["longest_ms"]
        figures["p99_ms_while_filling"] = filled["p99_ms"]
    return figures
