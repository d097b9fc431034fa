"""Kernels take time on the card, and NVML shows it as utilisation.

The programs have a clock that only moves when they wait for the card: how busy the machine is
changes nothing.
"""

import json
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles
from tests.native import sanitizers
from tests.native.simulated import compile_c, python


@pytest.fixture(scope="module")
def still_clock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The value of LD_PRELOAD."""
    library = tmp_path_factory.mktemp("clock") / "still_clock.so"
    compile_c(Path(__file__).with_name("still_clock.c"), library, "-shared", "-fPIC")
    others = sanitizers.variables().get("LD_PRELOAD", "")  # ASan's runtime has to be the first
    return ":".join(filter(None, (others, str(library))))


BUSY = """
import ctypes, json, os, time
import pynvml as n
cuda = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
ok(cuda.cuInit(0))
context, module, kernel, event = (ctypes.c_void_p() for _ in range(4))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), b"anything"))
ok(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"busy_5000us"))
def launch():
    ok(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None))
began = time.monotonic()
launch()
not_ready = cuda.cuStreamQuery(None)
ok(cuda.cuCtxSynchronize())
alone = time.monotonic() - began
n.nvmlInit()
cards = [n.nvmlDeviceGetHandleByIndex(index) for index in (0, 1)]
for _ in range(320):  # 1.6 s of work: utilisation is that of the last second
    launch()
    ok(cuda.cuCtxSynchronize())
rates = [n.nvmlDeviceGetUtilizationRates(card).gpu for card in cards]
(sample,) = n.nvmlDeviceGetProcessUtilization(cards[0], 0)
print(json.dumps({
    "not_ready": not_ready, "alone": alone, "rates": rates,
    "own": sample.pid == os.getpid(), "share": sample.smUtil,
    "hotter": n.nvmlDeviceGetTemperature(cards[0], 0) > n.nvmlDeviceGetTemperature(cards[1], 0),
}))
"""


def test_running_kernels_raise_the_utilisation(node: NodeFiles, still_clock: str) -> None:
    seen = json.loads(python(node, BUSY, LD_PRELOAD=still_clock))
    assert seen["not_ready"] == 600  # CUDA_ERROR_NOT_READY
    assert seen["alone"] == pytest.approx(0.005)
    assert seen["rates"] == [100, 0]
    assert seen["own"]
    assert seen["share"] == 100
    assert seen["hotter"]


def test_a_card_that_works_half_of_the_time_is_half_utilised(
    node: NodeFiles, still_clock: str
) -> None:
    """Each kernel is followed by a pause of the same length."""
    wait = """
class Time(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
def pause():
    until = time.monotonic_ns() + 5_000_000
    end = Time(until // 10**9, until % 10**9)
    assert ctypes.CDLL(None).clock_nanosleep(1, 1, ctypes.byref(end), None) == 0
"""
    script = BUSY.replace("began = ", f"{wait}began = ")
    script = script.replace("    launch()\n", "    launch()\n    pause()\n    pause()\n")
    seen = json.loads(python(node, script, LD_PRELOAD=still_clock))
    assert (seen["rates"], seen["share"]) == ([50, 0], 50)


EVENTS = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
def new(create, *arguments):
    made = ctypes.c_void_p()
    ok(create(ctypes.byref(made), *arguments))
    return made
ok(cuda.cuInit(0))
ok(cuda.cuCtxSetCurrent(new(cuda.cuDevicePrimaryCtxRetain, 0)))
module = new(cuda.cuModuleLoadData, b"anything")
kernel = new(cuda.cuModuleGetFunction, module, b"busy_3000us")
stream, before, after = new(cuda.cuStreamCreate, 0), new(cuda.cuEventCreate, 0), new(
    cuda.cuEventCreate, 0)
ok(cuda.cuEventRecord(before, stream))
for _ in range(4):
    ok(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, None, None))
ok(cuda.cuEventRecord(after, stream))
ok(cuda.cuEventSynchronize(after))
passed = ctypes.c_float()
ok(cuda.cuEventElapsedTime(ctypes.byref(passed), before, after))
print(passed.value)
"""


def test_events_measure_the_work_between_them(node: NodeFiles, still_clock: str) -> None:
    assert float(python(node, EVENTS, LD_PRELOAD=still_clock)) == pytest.approx(12)
