"""Every function of the simulated driver fails or hangs on request, while programs run."""

import subprocess
import sys

import pynvml
import pytest

from gpupool.hardware import simdriver_results
from gpupool.hardware.simdriver import NodeFiles, inject
from gpupool.hardware.simdriver_faults import parse_fault, variable
from gpupool.hardware.simdriver_state import BadState
from tests.native.driver_script import BEGIN
from tests.native.simulated import environment, python, run
from tests.native.test_null_arguments import names

NVML = """
import ctypes
from ctypes import byref, c_void_p
nvml = ctypes.CDLL("libnvidia-ml.so.1")
memory, name = (ctypes.c_uint64 * 3)(), ctypes.create_string_buffer(96)
def card(index):
    found = c_void_p()
    return nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(found)), found
def answers(index):
    result, handle = card(index)
    return (result, nvml.nvmlDeviceGetMemoryInfo(handle, memory),
            nvml.nvmlDeviceGetName(handle, name, 96))
print(nvml.nvmlInit_v2(), *(answers(index) for index in (0, 1)), sep="; ")
"""


def test_a_call_about_one_card_fails_and_the_other_card_answers(node: NodeFiles) -> None:
    inject(node, 1, parse_fault("fail=nvmlDeviceGetMemoryInfo:TIMEOUT"))
    assert python(node, NVML) == "0; (0, 0, 0); (0, 10, 0)\n"
    inject(node, 0, parse_fault("recover"))
    assert python(node, NVML) == "0; (0, 0, 0); (0, 10, 0)\n"
    inject(node, 1, parse_fault("recover"))
    assert python(node, NVML) == "0; (0, 0, 0); (0, 0, 0)\n"


def test_a_handle_that_is_asked_by_index_can_fail(node: NodeFiles) -> None:
    inject(node, 0, parse_fault("fail=nvmlDeviceGetHandleByIndex_v2:IRQ_ISSUE"))
    assert python(node, NVML) == "0; (11, 2, 2); (0, 0, 0)\n"


def test_the_first_call_of_all_can_fail(node: NodeFiles) -> None:
    inject(node, None, parse_fault("fail=nvmlInit*:DRIVER_NOT_LOADED"))
    inject(node, None, parse_fault("fail=cuInit:SYSTEM_NOT_READY"))
    assert python(node, NVML) == "9; (1, 1, 1); (1, 1, 1)\n"
    assert python(node, f"{BEGIN}\nprint(cuda.cuInit(0))") == "802\n"


def test_a_fault_begins_after_some_calls_and_ends_after_others(node: NodeFiles) -> None:
    inject(node, 0, parse_fault("fail=cuMemAlloc_v2:OUT_OF_MEMORY:after=2:times=3"))
    script = f"""
{BEGIN}
begin()
pointer = c_uint64()
print(*(cuda.cuMemAlloc_v2(byref(pointer), c_size_t(1)) for _ in range(7)), used_mib())
"""
    assert python(node, script) == "0 0 2 2 2 0 0 0\n"


def test_a_variable_gives_faults_to_one_program(node: NodeFiles) -> None:
    faults = [parse_fault("fail=cuMemAlloc*:2:times=1"), parse_fault("fail=cuCtxSynchronize:719")]
    script = f"""
{BEGIN}
begin()
pointer = c_uint64()
print(*(cuda.cuMemAlloc_v2(byref(pointer), c_size_t(1)) for _ in range(2)), cuda.cuCtxSynchronize())
"""
    assert python(node, script, GPUPOOL_SIM_FAULTS=variable(faults)) == "2 0 719\n"
    assert python(node, script, GPUPOOL_SIM_FAULTS=variable(faults, card=1)) == "0 0 0\n"
    assert python(node, script) == "0 0 0\n"


def test_a_variable_that_is_no_fault_is_reported_and_ignored(node: NodeFiles) -> None:
    broken = "cuInit;cuInit=x;cuInit=3,often=1;=3;cuCtxSynchronize=0"
    done = run(node, "nvidia-smi", "-L", extra={"GPUPOOL_SIM_FAULTS": broken})
    assert done.returncode == 0
    assert [line.rpartition(" ")[2] for line in done.stderr.splitlines()] == broken.split(";")


@pytest.mark.parametrize(
    ("call", "begin", "ask"),
    [
        ("nvmlDeviceGetName", "nvml.nvmlInit_v2(); handle = card(0)[1]",
         "nvml.nvmlDeviceGetName(handle, name, 96)"),
        ("cuCtxSynchronize", "begin()", "cuda.cuCtxSynchronize()"),
    ],
)  # fmt: skip
def test_a_call_hangs_until_it_is_released(
    node: NodeFiles, call: str, begin: str, ask: str
) -> None:
    script = f"""
{BEGIN}
{NVML}
import sys
{begin}
print("ready", flush=True)
sys.stdin.readline()
print({ask}, flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(node),
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdout.readline()
        assert program.stdout.readline() == "ready\n"
        inject(node, 0, parse_fault(f"hang={call}"))
        program.stdin.write("\n")
        program.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.3)
        inject(node, 0, parse_fault("recover"))
        assert program.stdout.readline() == "0\n"
        assert program.wait(20) == 0


def test_every_function_can_fail(node: NodeFiles) -> None:
    inject(node, None, parse_fault("fail=cu*:UNKNOWN"))
    inject(node, None, parse_fault("fail=nvml*:UNKNOWN"))
    cuda = names("cuda", r"ENTRY\(\w+, \d+, \d, (\w+)\)")
    nvml = [*names("nvml", r"ENTRY\((\w+)\)"), "nvmlShutdown", "nvmlInternalGetExportTable"]
    script = f"""
import ctypes
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
zeros = [ctypes.c_void_p()] * 11
print([name for library, names in ((cuda, {cuda!r}), (nvml, {nvml!r})) for name in names
       if getattr(library, name)(*zeros) != 999])
"""
    assert python(node, script) == "[]\n"


def test_a_gate_leaves_all_arguments_as_they_are(node: NodeFiles) -> None:
    """cuLaunchKernel has eleven arguments, of which registers hold six or eight."""
    inject(node, 1, parse_fault("fail=cuLaunchKernel:UNKNOWN"))  # of another card: it is looked at
    script = f"""
{BEGIN}
begin()
function, stream = kernel("busy_400000us"), made(cuda.cuStreamCreate, 0)
def launched(*shape, stream):
    return cuda.cuLaunchKernel(function, *shape, 0, stream, None, None)
print(*(launched(*(0 if place == zero else 1 for place in range(6)), stream=stream)
        for zero in range(7)))
print(cuda.cuStreamQuery(stream), launched(1, 1, 1, 1, 1, 1, stream=c_void_p(99)))
"""
    assert python(node, script) == "1 1 1 1 1 1 0\n600 400\n"


def test_the_names_of_errors_are_those_of_the_real_libraries(node: NodeFiles) -> None:
    real = {
        name.removeprefix("NVML_ERROR_"): value
        for name, value in vars(pynvml).items()
        if name.startswith("NVML_ERROR_")
    }
    assert real == simdriver_results.NVML
    script = """
import ctypes
from cuda.bindings.driver import CUresult
cuda, text = ctypes.CDLL("libcuda.so.1"), ctypes.c_char_p()
found = {}
for result in CUresult:
    assert cuda.cuGetErrorName(int(result), ctypes.byref(text)) == 0, result
    assert text.value.decode() == result.name
    found[result.name.removeprefix("CUDA_ERROR_")] = int(result)
del found["CUDA_SUCCESS"]
print(sorted(found.items()))
"""
    assert python(node, script) == f"{sorted(simdriver_results.CUDA.items())}\n"


def test_more_faults_than_there_is_room_for_are_refused(node: NodeFiles) -> None:
    for _ in range(32):
        inject(node, 0, parse_fault("hang=cuInit"))
    with pytest.raises(BadState, match="at most 32 calls"):
        inject(node, 0, parse_fault("hang=cuInit"))
    inject(node, None, parse_fault("recover"))
    assert python(node, f"{BEGIN}\nprint(cuda.cuInit(0))") == "0\n"
