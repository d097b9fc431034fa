"""The simulated driver refuses nearly every call before initialisation and after shutdown."""

from gpupool.hardware.simdriver import NodeFiles
from tests.native.simulated import python
from tests.native.test_null_arguments import names

# What may be called before cuInit and before nvmlInit.
EARLY = {
    *("cuInit", "cuDriverGetVersion", "cuGetProcAddress", "cuGetProcAddress_v2"),
    *("cuGetErrorName", "cuGetErrorString", "cuGetExportTable"),
    *("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags"),
    *("nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"),
}
ASK_ALL = """
import ctypes
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
zeros = [ctypes.c_void_p()] * 11
def others(library, names, wanted):
    return [name for name in names if getattr(library, name)(*zeros) != wanted]
"""


def functions() -> tuple[list[str], list[str]]:
    cuda = names("cuda", r"ENTRY\(\w+, \d+, \d, (\w+)\)")
    nvml = [*names("nvml", r"ENTRY\((\w+)\)"), "nvmlShutdown"]
    return [n for n in cuda if n not in EARLY], [n for n in nvml if n not in EARLY]


def test_nothing_else_is_allowed_before_initialisation(node: NodeFiles) -> None:
    cuda, nvml = functions()
    script = f"{ASK_ALL}\nprint(others(cuda, {cuda!r}, 3), others(nvml, {nvml!r}, 1))"
    assert python(node, script) == "[] []\n"


def test_nvml_is_initialised_until_as_many_shutdowns_as_initialisations(node: NodeFiles) -> None:
    _, nvml = functions()
    script = f"""
{ASK_ALL}
count, events, event = ctypes.c_uint(), ctypes.c_void_p(), (ctypes.c_uint64 * 4)()
ask = lambda: nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
print(nvml.nvmlInit_v2(), nvml.nvmlInit(), nvml.nvmlInitWithFlags(0))
assert nvml.nvmlEventSetCreate(ctypes.byref(events)) == 0
print([(nvml.nvmlShutdown(), ask()) for _ in range(4)])
print(others(nvml, {nvml!r}, 1))
print(nvml.nvmlInit_v2(), ask(), nvml.nvmlEventSetWait_v2(events, event, 0))
print(nvml.nvmlEventSetCreate(ctypes.byref(events)),
      [nvml.nvmlEventSetFree(events) for _ in range(2)])
"""
    assert python(node, script).splitlines() == [
        "0 0 0",
        "[(0, 0), (0, 0), (0, 1), (1, 1)]",
        "[]",
        "0 0 2",
        "0 [0, 2]",
    ]
