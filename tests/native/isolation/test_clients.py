"""Third-party programs see the share as the whole card, and are held to it."""

import json
import re
import sys
from pathlib import Path

import pytest

from gpupool.contract.allocation import UNLIMITED
from tests.native import debian
from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.limited import Container, make_container
from tests.native.simulated import holding
from tests.native.terminal import shown_by

QUIET = {"PYTHONWARNINGS": "ignore", "CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING": "1"}
QUERY = ("--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits")
BINDINGS = """
from cuda.bindings import driver as d
def ok(answer):
    assert answer[0] == 0, answer[0]
    return answer[1] if len(answer) == 2 else answer[1:]
ok(d.cuInit(0))
device = ok(d.cuDeviceGet(0))
print(ok(d.cuDeviceTotalMem(device)) >> 20)
d.cuCtxSetCurrent(ok(d.cuDevicePrimaryCtxRetain(device)))
ok(d.cuMemAlloc(1 << 30))
count = 0
while (answer := d.cuMemAlloc(512 << 20))[0] == 0:
    count += 1
print(count, answer[0].name, *(figure >> 20 for figure in ok(d.cuMemGetInfo())))
"""
CORE = """
from cuda.core import Device
device = Device(0)
device.set_current()
stream = device.create_stream()
buffers = [device.memory_resource.allocate(1 << 30, stream=stream)]
try:
    while True:
        buffers.append(device.memory_resource.allocate(512 << 20, stream=stream))
except Exception as error:
    print(len(buffers), "OUT_OF_MEMORY" in str(error))
for buffer in buffers:
    buffer.close(stream=stream)
stream.sync()
print(len([device.memory_resource.allocate(512 << 20, stream=stream) for _ in range(6)]))
"""
NUMBA = """
from numba import cuda
import numpy
kept = []
print(*(figure >> 20 for figure in cuda.current_context().get_memory_info()))
try:
    while True:
        kept.append(cuda.device_array(512 << 20, dtype=numpy.uint8))
except Exception as error:
    print(len(kept), "OUT_OF_MEMORY" in str(error))
"""
PYNVML = """
import pynvml as n
n.nvmlInit()
card = n.nvmlDeviceGetHandleByIndex(0)
for info in n.nvmlDeviceGetMemoryInfo(card), n.nvmlDeviceGetMemoryInfo(card, n.nvmlMemory_v2):
    print(info.total >> 20, info.used >> 20, info.free >> 20)
"""


def test_cuda_bindings_are_held_to_the_limit(container_by_each_way: Container) -> None:
    seen = container_by_each_way.python(BINDINGS, **QUIET)
    assert seen == "3226\n4 CUDA_ERROR_OUT_OF_MEMORY 154 3226\n"


def test_cuda_core_with_its_pools_is_held_to_the_limit(container_by_each_way: Container) -> None:
    assert container_by_each_way.python(CORE, **QUIET) == "5 True\n6\n"


def test_numba_is_held_to_the_limit(container_by_each_way: Container) -> None:
    assert container_by_each_way.python(NUMBA, **QUIET) == "3226 3226\n6 True\n"


def test_nvidia_ml_py_shows_the_share_in_both_struct_versions(
    container_by_each_way: Container,
) -> None:
    assert container_by_each_way.python(PYNVML) == "3226 0 3226\n" * 2


def test_our_nvidia_smi_shows_the_share(container_by_each_way: Container) -> None:
    assert container_by_each_way.run("nvidia-smi", *QUERY).stdout == "3226, 0, 3226\n"
    screen = container_by_each_way.run("nvidia-smi").stdout
    assert "0MiB / 3226MiB" in " ".join(screen.split())


def test_gpustat_shows_the_share(container_by_each_way: Container) -> None:
    done = container_by_each_way.run(sys.executable, "-m", "gpustat", "--json")
    (card,) = json.loads(done.stdout)["gpus"]
    assert (card["memory.used"], card["memory.total"]) == (0, 3226)


def test_nvitop_shows_the_share(container_by_each_way: Container) -> None:
    done = container_by_each_way.run(sys.executable, "-m", "nvitop", "--once", "--ascii")
    assert "0B / 3226MiB" in " ".join(done.stdout.split()), done.stderr


@pytest.mark.filterwarnings("default:NOT TESTED")
@pytest.mark.parametrize("version", debian.SMIS)
def test_the_real_nvidia_smi_shows_the_share_and_the_containers_processes(
    container_by_each_way: Container, version: str
) -> None:
    smi = debian.available(debian.SMIS[version])
    with holding(container_by_each_way.node, 0, 500) as neighbour:
        screen = container_by_each_way.python(
            f"{CUDA}\nimport subprocess\nbegin()\nalloc(100 * MIB)\n"
            f"print(os.getpid())\nsys.stdout.flush()\nsubprocess.run([{str(smi)!r}])"
        )
    pid, _, table = screen.partition("\n")
    assert "100MiB / 3226MiB" in " ".join(table.split())
    assert re.search(rf" {pid} +C .* 100MiB ", table)
    assert str(neighbour.pid) not in table


@pytest.mark.filterwarnings("default:NOT TESTED")
def test_nvtop_shows_the_share(container_by_each_way: Container) -> None:
    nvtop = debian.available(debian.NVTOP)
    shown = shown_by(nvtop, "-C", env=container_by_each_way.variables(), until=b"3.150")
    assert b"3.150" in shown  # GiB: 3226 MiB
    assert b"15.752" not in shown


def test_without_isolation_programs_see_the_whole_card(tmp_path: Path) -> None:
    container = make_container(tmp_path, limits=UNLIMITED)
    seen = container.python(BINDINGS, **QUIET)
    assert seen == f"16130\n29 CUDA_ERROR_OUT_OF_MEMORY {16130 - 1024 - 29 * 512} 16130\n"
    assert container.run("nvidia-smi", *QUERY).stdout == "16130, 0, 16130\n"
    assert not container.region.exists()
