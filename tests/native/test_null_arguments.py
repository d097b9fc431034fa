"""A function that gets NULL and 0 for every argument returns an error; it does not crash.

Real programs make such mistakes, and a crash inside the driver hides them. Under the sanitizers
(sanitizers.py) this also calls every function once.
"""

import re
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles
from native import build
from tests.native.isolation.limited import make_container
from tests.native.simulated import python

SIMDRIVER = build.HERE / "simdriver"
LEFT_OUT = {"nvmlShutdown"}  # after it, all functions return "not initialised"
CALL_ALL = """
import ctypes
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert nvml.nvmlInit_v2() == 0
zeros = [ctypes.c_void_p()] * 11
for library, names in ((cuda, {cuda!r}), (nvml, {nvml!r})):
    for name in names:
        # Each time: one of the functions resets the context.
        assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert cuda.cuCtxSetCurrent(context) == 0
        print(name, flush=True)
        getattr(library, name)(*zeros)
print("all")
"""


def names(library: str, pattern: str) -> list[str]:
    text = (SIMDRIVER / library / "names.inc").read_text(encoding="ascii")
    return sorted(set(re.findall(pattern, text)) - LEFT_OUT)


@pytest.fixture(scope="module")
def script() -> str:
    cuda = names("cuda", r"ENTRY\(\w+, \d+, \d, (\w+)\)")
    nvml = names("nvml", r"ENTRY\((\w+)\)")
    assert len(cuda) > 500
    assert len(nvml) > 200
    return CALL_ALL.replace("{cuda!r}", repr(cuda)).replace("{nvml!r}", repr(nvml))


def test_the_simulated_driver_returns(node: NodeFiles, script: str) -> None:
    assert python(node, script).endswith("all\n")


def test_the_limiter_returns(tmp_path: Path, script: str) -> None:
    assert make_container(tmp_path).python(script).endswith("all\n")
