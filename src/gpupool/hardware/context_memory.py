"""How much memory of a card the driver takes for a process's first context.

It is 300 to 500 MiB on recent cards, depends on the card and the driver, and no call tells it. So a
child process creates contexts on every card, and NVML tells how much they hold.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

_MEASURE_SECONDS = 60
# Without hostPID the change of the card's whole use is measured, and other programs change it, too.
LARGEST_MIB = 4096


class NotMeasured(Exception):
    """The memory of a context could not be measured; the text says why."""


def measure_context_mib(libraries: Path | None = None) -> int:
    """Of the card where a context takes most. Raises NotMeasured.

    `libraries`: the directory of the driver's libraries, if it is not the usual one.
    """
    environment = dict(os.environ)
    if libraries is not None:
        environment["LD_LIBRARY_PATH"] = str(libraries)
    try:
        code, output, errors = _run(environment)
    except OSError as error:
        raise NotMeasured(f"no process could be started: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"the driver did not answer in {_MEASURE_SECONDS} s") from None
    if code < 0:
        raise NotMeasured(f"its process was killed by signal {-code}")
    if code:
        raise NotMeasured(_last_line(errors) or f"its process ended with {code}")
    # The last line: the driver's library may print something of its own.
    found = _last_line(output)
    measured = int(found) if found.isascii() and found.isdigit() and len(found) < 10 else None
    if measured is None or measured > LARGEST_MIB:
        raise NotMeasured(f"{found[:100] or 'nothing'} MiB were measured, which no context takes")
    return measured


def _run(environment: dict[str, str]) -> tuple[int, str, str]:
    """Exit code, output and errors. Raises OSError, TimeoutExpired."""
    process = subprocess.Popen(
        # A process of its own: within a process, the initialisation of CUDA cannot be undone.
        [sys.executable, "-I", "-c", _MEASURE],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
    )
    try:
        output, errors = process.communicate(timeout=_MEASURE_SECONDS)
    except subprocess.TimeoutExpired:
        # A broken card can block a call of the driver without end, and then not even SIGKILL ends
        # the process. So nobody waits for it but a thread that does nothing else.
        process.kill()
        threading.Thread(target=process.communicate, name="context-memory", daemon=True).start()
        raise
    return process.returncode, output, errors


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].removeprefix("OSError: ") if lines else ""


# In a pid namespace NVML may not show our own process. Then the change of the card's whole memory
# use is taken: the median of several tries, because other processes use the card as well.
_MEASURE = """
import ctypes, os, statistics, sys, uuid, pynvml
cuda = ctypes.CDLL("libcuda.so.1")
if code := cuda.cuInit(0):
    sys.exit(f"cuInit failed with CUresult {code}")
count, context, name = ctypes.c_int(), ctypes.c_void_p(), (ctypes.c_ubyte * 16)()
cuda.cuDeviceGetCount(ctypes.byref(count))
pynvml.nvmlInit()
found, failures = [], []

def measured(device, card):
    before = pynvml.nvmlDeviceGetMemoryInfo(card).used
    if code := cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        raise ValueError(f"cuDevicePrimaryCtxRetain failed with CUresult {code}")
    after = pynvml.nvmlDeviceGetMemoryInfo(card).used
    own = [
        process.usedGpuMemory
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(card)
        if process.pid == os.getpid() and process.usedGpuMemory
    ]
    cuda.cuDevicePrimaryCtxRelease_v2(device)
    return own[0] if own else max(0, after - before)

for device in range(count.value):
    # One broken card, or one that another process has for itself alone, says nothing of the others.
    try:
        cuda.cuDeviceGetUuid(name, device)
        card = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.UUID(bytes=bytes(name))}")
        found.append(statistics.median(measured(device, card) for _ in range(3)))
    except (ValueError, pynvml.NVMLError) as error:
        failures.append(f"card {device}: {error}")
if not found:
    sys.exit(failures[0] if failures else "CUDA shows no card")
print(-(-int(max(found)) // 2**20))
"""
