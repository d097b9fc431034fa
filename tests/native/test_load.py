"""Kernels take time on the card, and NVML shows it as utilisation."""

import json

from gpupool.hardware.simdriver import NodeFiles
from tests.native.simulated import python

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
while time.monotonic() < began + 1.6:
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


def test_running_kernels_raise_the_utilisation(node: NodeFiles) -> None:
    seen = json.loads(python(node, BUSY))
    assert seen["not_ready"] == 600  # CUDA_ERROR_NOT_READY
    assert seen["alone"] >= 0.005
    assert seen["rates"][0] > 30  # about 100, but less where the machine is slow
    assert seen["rates"][1] == 0
    assert seen["own"]
    assert seen["share"] > 30
    assert seen["hotter"]


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


def test_events_measure_the_work_between_them(node: NodeFiles) -> None:
    assert 12 <= float(python(node, EVENTS)) < 100
