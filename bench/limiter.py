"""What the limiter costs, on a driver that does nothing: with and without it, in turns.

CPU nanoseconds for a pair of cuMemAlloc and cuMemFree with 1, 8 and 64 processes at once, for a
cuLaunchKernel without and with a share of compute, and how much longer a program takes to start.
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpupool.hardware.limiter import Settings, install
from native import build

SOURCES = Path(__file__).parent / "native"
PROCESSES = (1, 8, 64)
ROUNDS = 6_400_000  # of all processes together
TIMES = 7
STARTS = 300
UUID = "GPU-00000000-0000-0000-0000-000000000000"


def measure_limiter() -> dict[str, Any]:
    build.build(platform.machine())
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        _compile("null_driver.c", place / "driver" / "libcuda.so.1", "-shared", "-fPIC")
        _compile("calls.c", place / "calls", "-ldl")
        plain = {"LD_LIBRARY_PATH": str(place / "driver"), "PATH": os.defpath}
        limited = _limited(place, "limits", plain, percent=0)
        shared = _limited(place, "shared", plain, percent=99)
        figures: dict[str, Any] = {
            f"pair_{count}": _compare(place, ("pair", str(count)), plain, limited, ROUNDS // count)
            for count in PROCESSES
        }
        figures["launch"] = _compare(place, ("launch", "1"), plain, limited, ROUNDS)
        figures["launch_shared"] = _compare(place, ("launch", "1"), plain, shared, ROUNDS // 4)
        figures["start_us"] = _starts(plain, limited)
        return figures


def _compile(source: str, target: Path, *flags: str) -> None:
    target.parent.mkdir(exist_ok=True)
    machine = f"{platform.machine()}-linux-gnu.{build.GLIBC}"
    subprocess.run(
        [
            *(sys.executable, "-m", "ziglang", "cc", "-target", machine, "-O2", "-std=gnu11"),
            *(str(SOURCES / source), "-o", str(target), *flags),
        ],
        check=True,
        env={**os.environ, **build.cache_environment()},
    )


def _limited(place: Path, name: str, plain: Mapping[str, str], *, percent: int) -> dict[str, str]:
    limits = place / name
    limits.write_text(f"{UUID} 16130 {percent}\n", encoding="ascii")
    files = install(
        place / "limiter",
        Settings(
            driver=plain["LD_LIBRARY_PATH"],
            limits=str(limits),
            limits_mount="",
            region=str(place / f"{name}-region"),
            directory="",
        ),
    )
    return {**plain, **files.variables(plain)}


def _compare(
    place: Path,
    words: tuple[str, ...],
    plain: Mapping[str, str],
    limited: Mapping[str, str],
    rounds: int,
) -> dict[str, float]:
    """In turns: what else runs on the machine disturbs both alike."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(TIMES):
        for figures, variables in zip(found, (plain, limited), strict=True):
            command = [str(place / "calls"), *words, str(rounds)]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env=dict(variables)
            )
            figures.append(float(done.stdout))
    bare, held = (statistics.median(figures) for figures in found)
    return {"bare_ns": bare, "limited_ns": held, "added_ns": held - bare}


def _starts(plain: Mapping[str, str], limited: Mapping[str, str]) -> dict[str, float]:
    best = {"bare_us": 1e9, "limited_us": 1e9}
    for _ in range(STARTS):
        for name, variables in (("bare_us", plain), ("limited_us", limited)):
            start = time.perf_counter()
            os.waitpid(os.posix_spawn("/bin/true", ["true"], dict(variables)), 0)
            best[name] = min(best[name], (time.perf_counter() - start) * 1e6)
    return best
