"""What processes compute: NVML and the reader of the state file say the same."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pynvml
import pytest

from gpupool.hardware import nvml_processes
from gpupool.hardware.driver import Loads, ProgramLoad
from gpupool.hardware.simdriver import NodeFiles, create_node, inject
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import NotBuilt, card_uuid
from gpupool.hardware.simulated import SimulatedDriver

V100 = card_profile("Tesla V100-SXM2-16GB", 16130)

# A line says what to do: run a kernel on card 1, or tell what NVML says since a time.
WORKER = """
import asyncio, ctypes, sys
from gpupool.hardware.driver import *
from gpupool.hardware.nvml import NvmlDriver
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuModuleLoadData(ctypes.byref(module), b"anything")
assert not cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"busy_50000us")

async def main():
    driver = NvmlDriver()
    await driver.look()
    for line in sys.stdin:
        if line == "run\\n":
            assert not cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
            assert not cuda.cuCtxSynchronize()
            print("done", flush=True)
        else:
            print(repr(await driver.loads(int(line))), flush=True)

asyncio.run(main())
"""


class Worker:
    def __init__(self, files: NodeFiles) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(files.libraries)},
        )
        self.pid = self._process.pid

    def ask(self, line: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def loads(self, since_us: int) -> Loads:
        found: Loads = eval(self.ask(str(since_us)), {"Loads": Loads, "ProgramLoad": ProgramLoad})
        return found

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    try:
        return create_node(tmp_path, "node-1", [V100] * 2)
    except NotBuilt as error:
        pytest.skip(str(error))


def direct(files: NodeFiles, since_us: int) -> Loads:
    async def ask() -> Loads:
        driver = SimulatedDriver(files.state)
        try:
            return await driver.loads(since_us)
        finally:
            await driver.close()

    return asyncio.run(ask())


def now_us() -> int:
    return time.time_ns() // 1000


def test_a_kernel_is_seen_until_the_next_question_however_late_that_is(files: NodeFiles) -> None:
    card = card_uuid("node-1", 1)
    both = frozenset({card_uuid("node-1", 0), card})
    with Worker(files) as worker:
        assert (
            worker.loads(1) == direct(files, 1) == Loads((ProgramLoad(worker.pid, card, 0),), both)
        )
        start_us = now_us()
        assert worker.ask("run") == "done\n"
        busy, idle = ProgramLoad(worker.pid, card, 1), ProgramLoad(worker.pid, card, 0)
        # Percentages are those of the last second.
        deadline = time.monotonic() + 60
        while direct(files, now_us()).programs != (idle,):
            assert time.monotonic() < deadline
        for ask in (worker.loads, lambda since_us: direct(files, since_us)):
            assert ask(start_us).programs == (busy,)
            assert ask(now_us()).programs in ((), (idle,))
        inject(files, 0, parse_fault("fail=nvmlDeviceGetProcessUtilization:NOT_SUPPORTED"))
        assert worker.loads(start_us) == Loads((busy,), frozenset({card}))
        inject(files, 0, parse_fault("recover"))
        inject(files, 0, parse_fault("lost"))
        assert worker.loads(start_us).told == direct(files, start_us).told == frozenset({card})
    assert direct(files, start_us).programs == ()


class Told:
    def __init__(self, pid: int, time_us: int, percent: int) -> None:
        self.pid, self.timeStamp, self.smUtil = pid, time_us, percent


def test_the_newest_sample_of_a_process_counts_and_nonsense_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = [Told(7, 20, 60), Told(7, 10, 5), Told(0, 0, 0), Told(8, 30, 2**32 - 1)]
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 1)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUUID", lambda _: "GPU-a")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", lambda *_: told)
    found = nvml_processes.loads(0)
    assert found == Loads((ProgramLoad(7, "GPU-a", 60),), frozenset({"GPU-a"}))


def test_a_card_on_which_nobody_computes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 1)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUUID", lambda _: "GPU-a")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", none)
    assert nvml_processes.loads(0) == Loads((), frozenset({"GPU-a"}))
