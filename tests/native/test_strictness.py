"""The simulated driver refuses what the real one refuses: destroyed handles, handles of another
context, and flags that do not exist."""

import pytest

from gpupool.hardware.simdriver import NodeFiles
from gpupool.hardware.simdriver_state import Driver
from tests.native.driver_script import BEGIN
from tests.native.simulated import make_node, python

# By kind: how it is made and destroyed, and calls that use it. All calls succeed while it lives.
KINDS = {
    "stream": (
        "made(cuda.cuStreamCreate, 0)",
        "cuda.cuStreamDestroy_v2(it)",
        (
            "cuda.cuStreamSynchronize(it)",
            "cuda.cuStreamQuery(it)",
            "cuda.cuStreamGetFlags(it, byref(number))",
            "cuda.cuStreamGetPriority(it, byref(number))",
            "cuda.cuStreamGetCtx(it, byref(pointer))",
            "cuda.cuStreamGetId(it, byref(pointer))",
            "cuda.cuStreamIsCapturing(it, byref(number))",
            "cuda.cuStreamWaitEvent(it, event, 0)",
            "cuda.cuEventRecord(event, it)",
            "cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, it, None, None)",
            "cuda.cuMemcpyHtoDAsync_v2(memory, b'1', c_size_t(1), it)",
            "cuda.cuMemsetD8Async(memory, 1, c_size_t(1), it)",
            "cuda.cuMemAllocAsync(byref(pointer), c_size_t(1), it)",
            "cuda.cuLaunchHostFunc(it, nothing, None)",
        ),
        "400",
    ),
    "event": (
        "made(cuda.cuEventCreate, 0)",
        "cuda.cuEventDestroy_v2(it)",
        (
            "cuda.cuEventRecord(it, None)",
            "cuda.cuEventSynchronize(it)",
            "cuda.cuEventQuery(it)",
            "cuda.cuStreamWaitEvent(None, it, 0)",
            "cuda.cuEventElapsedTime(byref(c_float()), it, it)",
        ),
        "400",
    ),
    "module": (
        "made(cuda.cuModuleLoadData, b'any')",
        "cuda.cuModuleUnload(it)",
        (
            "cuda.cuModuleGetFunction(byref(pointer), it, b'name')",
            "cuda.cuModuleGetGlobal_v2(byref(pointer), None, it, b'name')",
        ),
        "400",
    ),
    "function": (
        "kernel('name')",
        "cuda.cuFuncGetModule(byref(pointer), it) or cuda.cuModuleUnload(pointer)",
        (
            "cuda.cuLaunchKernel(it, 1, 1, 1, 1, 1, 1, 0, None, None, None)",
            "cuda.cuFuncGetAttribute(byref(number), 0, it)",
            "cuda.cuFuncSetAttribute(it, 8, 0)",
            "cuda.cuFuncGetName(byref(pointer), it)",
            "cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(number), it, 1, c_size_t(0))",
        ),
        "400",
    ),
    "array": (
        "made(cuda.cuArrayCreate_v2, (c_uint64 * 3)(64, 64, 32 | 1 << 32))",
        "cuda.cuArrayDestroy(it)",
        ("cuda.cuArray3DGetDescriptor_v2((c_uint64 * 5)(), it)",),
        "400",
    ),
    "external memory": (
        "made(cuda.cuImportExternalMemory, (c_uint64 * 13)(1, 3, 0, MIB))",
        "cuda.cuDestroyExternalMemory(it)",
        (),
        "400",
    ),
    "graph": (
        "made(cuda.cuGraphCreate, 0)",
        "cuda.cuGraphDestroy(it)",
        (
            "cuda.cuGraphInstantiateWithFlags(byref(pointer), it, c_uint64(0))",
            "cuda.cuGraphAddKernelNode(byref(pointer), it, None, c_size_t(0), byref(function))",
        ),
        "1",
    ),
    "executable graph": (
        "made(cuda.cuGraphInstantiateWithFlags, graph, c_uint64(0))",
        "cuda.cuGraphExecDestroy(it)",
        ("cuda.cuGraphLaunch(it, None)",),
        "1",
    ),
    "pool": (
        "made(cuda.cuMemPoolCreate, byref(ON_CARD))",
        "cuda.cuMemPoolDestroy(it)",
        (
            "cuda.cuMemPoolTrimTo(it, c_size_t(0))",
            "cuda.cuMemPoolGetAttribute(it, 5, byref(pointer))",
            "cuda.cuMemPoolSetAttribute(it, 4, byref(c_uint64(0)))",
            "cuda.cuDeviceSetMemPool(0, it)",
            "cuda.cuMemAllocFromPoolAsync(byref(pointer), c_size_t(1), it, None)",
        ),
        "1",
    ),
    "memory": (
        "alloc(MIB)",
        "cuda.cuMemFree_v2(it)",
        (
            "cuda.cuMemsetD8_v2(it, 0, c_size_t(1))",
            "cuda.cuMemcpyHtoD_v2(it, b'1', c_size_t(1))",
            "cuda.cuPointerGetAttribute(byref(pointer), 9, it)",
        ),
        "1",
    ),
    "memory without an address": (
        "made(cuda.cuMemCreate, c_size_t(2 * MIB), byref(ON_CARD), c_uint64(0))",
        "cuda.cuMemRelease(it)",
        (
            "cuda.cuMemMap(place, c_size_t(2 * MIB), c_size_t(0), it, c_uint64(0))"
            " or cuda.cuMemUnmap(place, c_size_t(2 * MIB))",
        ),
        "1",
    ),
    "context": (
        "made(cuda.cuCtxCreate_v2, 0, 0)",
        "cuda.cuCtxDestroy_v2(it)",
        (
            "cuda.cuCtxSetCurrent(it)",
            "cuda.cuCtxPushCurrent_v2(it)",
            "cuda.cuCtxGetDevice_v2(byref(number), it)",
            "cuda.cuCtxGetApiVersion(it, byref(number))",
            "cuda.cuCtxSynchronize_v2(it)",
        ),
        "201",
    ),
}
THINGS = f"""
{BEGIN}
context = begin()
number, pointer = c_int(), c_void_p()
nothing = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: None)
event, function = made(cuda.cuEventCreate, 0), kernel("busy_1us")
memory, graph = alloc(MIB), made(cuda.cuGraphCreate, 0)
place = c_uint64()
ok(cuda.cuMemAddressReserve(
    byref(place), c_size_t(2 * MIB), c_size_t(0), c_uint64(0), c_uint64(0)))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_destroyed_handle_is_refused_by_every_call(node: NodeFiles, kind: str) -> None:
    make, end, uses, refused = KINDS[kind]
    script = f"""
{THINGS}
it = {make}
uses = [{", ".join(f"lambda: {use}" for use in uses)}]
print(*(use() if use() != NOT_READY else OK for use in uses))
ok(cuda.cuCtxSynchronize())
ok({end})
ok(cuda.cuCtxSetCurrent(context))
print(*(use() for use in uses))
print({end})
"""
    alive, after, twice = python(node, script).splitlines()
    assert alive.split() == ["0"] * len(uses)
    assert after.split() == [refused] * len(uses)
    assert twice == refused


DESTROYED_WITH_CONTEXT = ("stream", "event", "module", "array", "external memory", "memory")


@pytest.mark.parametrize("kind", DESTROYED_WITH_CONTEXT)
def test_what_a_context_owns_is_destroyed_with_it(node: NodeFiles, kind: str) -> None:
    make, end, uses, refused = KINDS[kind]
    script = f"""
{THINGS}
other = made(cuda.cuCtxCreate_v2, 0, 0)
it = {make}
before = used_mib()
ok(cuda.cuCtxDestroy_v2(other))
ok(cuda.cuCtxSetCurrent(context))
print({", ".join((*uses, end))})
print(used_mib())
"""
    printed = python(node, script).split()
    assert printed == [refused] * (len(uses) + 1) + ["1"]  # the memory of THINGS


def test_a_context_that_another_thread_destroyed_says_so_and_stays_current(node: NodeFiles) -> None:
    script = f"""
{BEGIN}
import threading
begin()
other = made(cuda.cuCtxCreate_v2, 0, 0)
thread = threading.Thread(target=lambda: ok(cuda.cuCtxDestroy_v2(other)))
thread.start(); thread.join()
current, again = c_void_p(), made(cuda.cuCtxCreate_v2, 0, 0)
assert again.value == other.value   # the handle is in use again
ok(cuda.cuCtxPopCurrent_v2(byref(current)))
pointer = c_uint64()
print(cuda.cuMemAlloc_v2(byref(pointer), c_size_t(1)), cuda.cuCtxSynchronize())
ok(cuda.cuCtxGetCurrent(byref(current)))
print(current.value == other.value)
ok(cuda.cuCtxPopCurrent_v2(byref(current)))
ok(cuda.cuCtxSynchronize())
"""
    assert python(node, script) == "709 709\nTrue\n"


def test_a_primary_context_that_was_released_says_that_it_is_destroyed(node: NodeFiles) -> None:
    script = f"""
{BEGIN}
context = begin()
ok(cuda.cuDevicePrimaryCtxRelease_v2(0))
print(cuda.cuCtxSynchronize(), cuda.cuCtxSetCurrent(context), cuda.cuDevicePrimaryCtxRelease_v2(0))
"""
    assert python(node, script) == "709 201 201\n"


def test_work_of_one_context_is_refused_in_streams_of_another(node: NodeFiles) -> None:
    script = f"""
{THINGS}
other = made(cuda.cuCtxCreate_v2, 0, 0)
stream = made(cuda.cuStreamCreate, 0)
theirs = kernel("name")
ok(cuda.cuCtxSetCurrent(context))
pointer = c_void_p()
print(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, None, None),
      cuda.cuLaunchKernel(theirs, 1, 1, 1, 1, 1, 1, 0, None, None, None),
      cuda.cuEventRecord(event, stream), cuda.cuStreamWaitEvent(stream, event, 0),
      cuda.cuMemAllocAsync(byref(pointer), c_size_t(1), stream))   # for the stream's device
"""
    assert python(node, script) == "400 400 400 0 0\n"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("cuda.cuInit(1)", 1),
        ("cuda.cuStreamCreate(byref(pointer), 2)", 1),
        ("cuda.cuEventCreate(byref(pointer), 8)", 1),
        ("cuda.cuEventCreate(byref(pointer), 4)", 1),  # between processes, and yet with times
        ("cuda.cuEventCreate(byref(pointer), 6)", 0),
        ("cuda.cuCtxCreate_v2(byref(pointer), 3, 0)", 1),
        ("cuda.cuCtxCreate_v2(byref(pointer), 256, 0)", 1),
        ("cuda.cuCtxCreate_v2(byref(pointer), 0, 9)", 101),
        ("cuda.cuCtxSetLimit(99, c_size_t(1))", 215),
        ("cuda.cuMemHostAlloc(byref(pointer), c_size_t(1), 8)", 1),
        ("cuda.cuMemAllocManaged(byref(pointer), c_size_t(1), 3)", 1),
        ("cuda.cuMemAlloc_v2(byref(pointer), c_size_t(0))", 1),
        ("cuda.cuMemFree_v2(c_uint64(memory.value + 512))", 1),  # not the beginning
        ("cuda.cuMemFree_v2(c_uint64(0))", 0),
        ("cuda.cuMemFreeHost(memory)", 1),
        ("cuda.cuMemHostUnregister(memory)", 713),
        ("cuda.cuGraphCreate(byref(pointer), 1)", 1),
        ("cuda.cuGraphAddKernelNode(byref(pointer), graph, None, c_size_t(1), byref(function))", 1),
        ("cuda.cuMemPoolCreate(byref(pointer), byref(Properties(0, 0, 1, 0)))", 1),
        ("cuda.cuMemCreate(byref(pointer), c_size_t(5), byref(ON_CARD), c_uint64(0))", 1),
        ("cuda.cuDeviceSetMemPool(1, made(cuda.cuMemPoolCreate, byref(ON_CARD)))", 1),
        ("cuda.cuMemUnmap(place, c_size_t(2 * MIB))", 1),  # nothing is mapped there
        ("cuda.cuMemAddressFree(place, c_size_t(4 * MIB))", 1),
    ],
)
def test_bad_arguments_are_refused(node: NodeFiles, call: str, result: int) -> None:
    assert python(node, f"{THINGS}\nprint({call})") == f"{result}\n"


def test_host_memory_is_registered_once(node: NodeFiles) -> None:
    script = f"""
{THINGS}
own = ctypes.create_string_buffer(4096)
register = lambda: cuda.cuMemHostRegister_v2(own, c_size_t(4096), 0)
print(register(), register(), *(cuda.cuMemHostUnregister(own) for _ in range(2)))
"""
    assert python(node, script) == "0 712 0 713\n"


def test_mapped_memory_keeps_its_handle_and_is_released_once(node: NodeFiles) -> None:
    script = f"""
{THINGS}
size = c_size_t(2 * MIB)
handle, again = c_uint64(), c_uint64()
ok(cuda.cuMemCreate(byref(handle), size, byref(ON_CARD), c_uint64(0)))
map = lambda: cuda.cuMemMap(place, size, c_size_t(0), handle, c_uint64(0))
print(map(), map())                                      # the addresses are taken
ok(cuda.cuMemRelease(handle))
print(cuda.cuMemRelease(handle), used_mib())             # not twice, and it is still mapped
ok(cuda.cuMemRetainAllocationHandle(byref(again), place))
print(again.value == handle.value, cuda.cuMemAddressFree(place, size))
ok(cuda.cuMemUnmap(place, size))
ok(cuda.cuMemRelease(again))
print(used_mib(), cuda.cuMemAddressFree(place, size))
"""
    assert python(node, script).split() == ["0", "1", "1", "3", "True", "1", "1", "0"]


# Kinds of which one can be used and destroyed without a change of another, and calls that make
# something, or whose result depends on more than the handle.
ALONE = (
    *("stream", "event", "external memory", "graph", "executable graph"),
    *("memory", "memory without an address"),
)
NOT_ALONE = ("Query", "AllocAsync", "Elapsed", "Instantiate", "AddKernelNode")
RANDOM = """
import random
choice, live, stale = random.Random({seed}), {{kind: [] for kind in KINDS}}, []
for step in range(3000):
    kind = choice.choice(list(KINDS))
    make, end, uses, refused = KINDS[kind]
    action = choice.random()
    if action < 0.3 or not live[kind]:
        it = make()
        assert it.value not in live[kind], (kind, "given out twice")
        live[kind].append(it.value)
        continue
    old = [value for known, value in stale if known == kind and value not in live[kind]]
    is_stale = bool(old) and action < 0.5
    value = choice.choice(old if is_stale else live[kind])
    ask = end if action > 0.75 or not uses else choice.choice(uses)
    result = ask(c_uint64(value))
    assert result == (refused if is_stale else OK), (step, kind, is_stale, result)
    if ask is end and not is_stale:
        live[kind].remove(value)
        stale.append((kind, value))
ok(cuda.cuCtxSynchronize())
print(used_mib() - 1 - len(live["memory"]) - 2 * len(live["memory without an address"]))
"""


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_random_calls_on_live_and_destroyed_handles_match_a_model(
    node: NodeFiles, seed: int
) -> None:
    entries = []
    for kind in ALONE:
        make, end, all_uses, refused = KINDS[kind]
        uses = [f"lambda it: {use}" for use in all_uses if not any(w in use for w in NOT_ALONE)]
        entries.append(
            f"{kind!r}: (lambda: {make}, lambda it: {end}, [{', '.join(uses)}], {refused})"
        )
    script = f"{THINGS}\nKINDS = {{{', '.join(entries)}}}\n{RANDOM.format(seed=seed)}"
    assert python(node, script) == "0\n"


@pytest.mark.parametrize(
    ("version", "result"), [("550.163.01", 0), ("555.58", 0), ("570.86.10", 6)]
)
def test_the_private_table_of_an_unknown_driver_is_refused(
    tmp_path_factory: pytest.TempPathFactory, version: str, result: int
) -> None:
    files = make_node(tmp_path_factory.mktemp("node") / "node", driver=Driver(version=version))
    script = """
import ctypes
nvml, table = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
known = bytes.fromhex("c4fe3e6cc98f6c4ea327ee696e12f7c4")
assert nvml.nvmlInit_v2() == 0
print(nvml.nvmlInternalGetExportTable(ctypes.byref(table), known),
      nvml.nvmlInternalGetExportTable(ctypes.byref(table), bytes(16)))
"""
    assert python(files, script) == f"{result} 6\n"
