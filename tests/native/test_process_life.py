"""What happens to the memory of a process that closes its files, calls exec, or forks."""

import subprocess
import sys
import time

import pytest

from gpupool.hardware.simdriver import NodeFiles, read_cards
from tests.native.simulated import MIB, environment, holding, python, run

BEGIN = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
def take(mib):
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)) == 0
def wait():
    print("ready", flush=True)
    sys.stdin.read()
"""
CLOSES_ALL = BEGIN + "take(100); os.closerange(3, 4096); wait()"
BECOMES_ANOTHER = BEGIN + 'take(100); os.execv("/bin/sh", ["sh", "-c", "echo ready; read line"])'
BECOMES_ANOTHER_USER = (
    BEGIN
    + f"take(100); os.execv(sys.executable, [sys.executable, '-c', {BEGIN + 'take(30); wait()'!r}])"
)
FORKS_EARLY = (
    BEGIN
    + """
version = ctypes.c_int()
cuda.cuDriverGetVersion(ctypes.byref(version))
said, say = os.pipe()
if os.fork():
    take(100)
    os.read(said, 1)
    wait()
else:
    take(30)
    os.write(say, b"!")
    sys.stdin.read()
"""
)


@pytest.mark.parametrize(
    ("script", "held"),
    [
        pytest.param(
            CLOSES_ALL, [100], id="a process that closes all descriptors keeps its memory"
        ),
        pytest.param(BECOMES_ANOTHER, [], id="exec gives back the memory"),
        pytest.param(BECOMES_ANOTHER_USER, [30], id="after exec only new memory counts"),
        pytest.param(
            FORKS_EARLY, [30, 100], id="a child forked before cuInit is counted by itself"
        ),
    ],
)
def test_memory_in_use_after_close_exec_and_fork(
    node: NodeFiles, script: str, held: list[int]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(node),
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        processes = read_cards(node)[0].processes
        assert sorted(process.used_bytes // MIB for process in processes) == held
        query = ("--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0")
        assert run(node, "nvidia-smi", *query).stdout == f"{sum(held)}\n"
    _wait_until_free(node)


def test_an_exclusive_card_accepts_one_process_at_a_time(node: NodeFiles) -> None:
    script = """
import ctypes, pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
pynvml.nvmlDeviceSetComputeMode(card, pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
context = ctypes.c_void_p()
print(*(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), card) for card in (0, 1)))
"""
    with holding(node, 0, 1):
        assert python(node, script) == "46 0\n"  # CUDA_ERROR_DEVICE_UNAVAILABLE
    assert python(node, script) == "0 0\n"


def _wait_until_free(node: NodeFiles) -> None:
    """A child may end a moment after its parent."""
    deadline = time.monotonic() + 60
    while read_cards(node)[0].used_bytes:
        assert time.monotonic() < deadline, read_cards(node)[0]
        time.sleep(0.01)
