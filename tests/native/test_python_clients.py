"""Third-party Python libraries run on the simulated driver, unchanged."""

import json
import sys

from gpupool.hardware.simdriver import NodeFiles, read_cards
from tests.native.simulated import MIB, holding, python, run

TOTAL = 16130 * MIB
# The libraries were built for a newer CUDA than the node's, and warn about it.
QUIET = {"PYTHONWARNINGS": "ignore", "CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING": "1"}


def test_nvidia_ml_py_reads_everything(node: NodeFiles) -> None:
    script = """
import json, pynvml as n
n.nvmlInit()
card = n.nvmlDeviceGetHandleByIndex(1)
first, second = n.nvmlDeviceGetMemoryInfo(card), n.nvmlDeviceGetMemoryInfo(card, n.nvmlMemory_v2)
print(json.dumps({
    "driver": n.nvmlSystemGetDriverVersion(), "cuda": n.nvmlSystemGetCudaDriverVersion(),
    "name": n.nvmlDeviceGetName(card), "uuid": n.nvmlDeviceGetUUID(card),
    "same": n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(card))),
    "bus": n.nvmlDeviceGetPciInfo(card).busId, "used": [first.used, second.used],
    "total": [first.total, second.total], "free": [first.free, second.free],
    "pids": [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(card)],
    "capability": n.nvmlDeviceGetCudaComputeCapability(card),
    "power": n.nvmlDeviceGetEnforcedPowerLimit(card),
    "temperature": n.nvmlDeviceGetTemperature(card, n.NVML_TEMPERATURE_GPU),
    "link": n.nvmlDeviceGetNvLinkState(card, 0),
}))
n.nvmlShutdown()
"""
    with holding(node, 1, 100) as child:
        seen = json.loads(python(node, script))
    assert seen == {
        "driver": "550.163.01",
        "cuda": 12040,
        "name": "Tesla V100-SXM2-16GB",
        "uuid": read_cards(node)[1].uuid,
        "same": 1,
        "bus": "00000000:00:08.0",
        "used": [100 * MIB] * 2,
        "total": [TOTAL] * 2,
        "free": [TOTAL - 100 * MIB] * 2,
        "pids": [child.pid],
        "capability": [7, 0],
        "power": 300_000,
        "temperature": 34,
        "link": 1,
    }


def test_a_function_that_is_not_simulated_returns_not_supported(node: NodeFiles) -> None:
    script = """
import pynvml as n
n.nvmlInit()
try:
    n.nvmlDeviceGetSupportedVgpus(n.nvmlDeviceGetHandleByIndex(0))
except n.NVMLError_NotSupported as error:
    print(error)
"""
    assert python(node, script) == "Not Supported\n"


def test_gpustat_lists_cards_and_processes(node: NodeFiles) -> None:
    with holding(node, 0, 3226) as child:
        done = run(node, sys.executable, "-m", "gpustat", "--json")
    first, second = json.loads(done.stdout)["gpus"]
    assert (first["memory.used"], first["memory.total"]) == (3226, 16130)
    assert [process["pid"] for process in first["processes"]] == [child.pid]
    assert (second["memory.used"], second["processes"]) == (0, [])


def test_nvitop_shows_the_card(node: NodeFiles) -> None:
    with holding(node, 0, 3226):
        done = run(node, sys.executable, "-m", "nvitop", "--once", "--ascii")
    assert done.returncode == 0, done.stderr
    assert "3226MiB / 16130MiB" in done.stdout
    assert "V100-SXM2-16GB" in done.stdout


def test_cuda_bindings_fill_a_card(node: NodeFiles) -> None:
    script = """
from cuda.bindings import driver as d
def ok(answer):
    assert answer[0] == 0, answer[0]
    return answer[1] if len(answer) == 2 else answer[1:]
ok(d.cuInit(0))
device = ok(d.cuDeviceGet(0))
print(ok(d.cuDeviceGetCount()), ok(d.cuDeviceTotalMem(device)))
d.cuCtxSetCurrent(ok(d.cuDevicePrimaryCtxRetain(device)))
ok(d.cuMemAlloc(1 << 30))
count = 0
while (answer := d.cuMemAlloc(512 << 20))[0] == 0:
    count += 1
print(count, answer[0].name, ok(d.cuMemGetInfo())[0] >> 20)
"""
    assert python(node, script, **QUIET) == (
        f"2 {TOTAL}\n29 CUDA_ERROR_OUT_OF_MEMORY {16130 - 1024 - 29 * 512}\n"
    )


def test_cuda_bindings_map_memory_at_reserved_addresses(node: NodeFiles) -> None:
    script = """
from cuda.bindings import driver as d
def ok(answer):
    assert answer[0] == 0, answer[0]
    return answer[1] if len(answer) == 2 else answer[1:]
ok(d.cuInit(0))
d.cuCtxSetCurrent(ok(d.cuDevicePrimaryCtxRetain(ok(d.cuDeviceGet(0)))))
free = lambda: ok(d.cuMemGetInfo())[0] >> 20
wanted = d.CUmemAllocationProp()
wanted.type = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
wanted.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
wanted.location.id = 0
before, size = free(), 64 << 20
memory = ok(d.cuMemCreate(size, wanted, 0))
address = ok(d.cuMemAddressReserve(size, 0, 0, 0))
ok(d.cuMemMap(address, size, 0, memory, 0))
d.cuMemcpyHtoD(address, b"hello", 5)
back = bytearray(5)
d.cuMemcpyDtoH(back, address, 5)
ok(d.cuMemRelease(memory))
during = free()
ok(d.cuMemUnmap(address, size))
ok(d.cuMemAddressFree(address, size))
print(bytes(back), before - during, before - free())
"""
    assert python(node, script, **QUIET) == "b'hello' 64 0\n"


def test_cuda_core_allocates_from_pools_and_copies(node: NodeFiles) -> None:
    script = """
from cuda.core import Device
device = Device(1)
device.set_current()
stream = device.create_stream()
print(device.name, device.uuid, tuple(device.compute_capability))
buffers = [device.memory_resource.allocate(1 << 30, stream=stream)]
try:
    while True:
        buffers.append(device.memory_resource.allocate(512 << 20, stream=stream))
except Exception as error:
    print(len(buffers), "OUT_OF_MEMORY" in str(error))
buffers[1].copy_from(buffers[2], stream=stream)
for buffer in buffers:
    buffer.close(stream=stream)
stream.sync()
"""
    uuid = read_cards(node)[1].uuid.removeprefix("GPU-")
    printed = python(node, script, **QUIET)
    assert printed == f"Tesla V100-SXM2-16GB {uuid} (7, 0)\n30 True\n"


def test_numba_makes_contexts_and_device_arrays(node: NodeFiles) -> None:
    script = """
import numpy as np
from numba import cuda
there = cuda.to_device(np.arange(1000))
print(len(cuda.gpus), there.copy_to_host().sum(), cuda.current_context().get_memory_info().total)
empty = cuda.device_array((1024, 1024), dtype=np.float32)
cuda.synchronize()
with cuda.gpus[1]:
    print(cuda.current_context().device.id, cuda.to_device(np.ones(5)).copy_to_host().sum())
"""
    assert python(node, script, **QUIET) == f"2 499500 {TOTAL}\n1 5.0\n"
