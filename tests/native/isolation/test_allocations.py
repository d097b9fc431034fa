"""Every way to allocate memory of a card is counted, and given back exactly."""

import pytest

from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.limited import Container

# Each defines take(size) -> (result, thing) and give(thing).
WAYS_TO_ALLOCATE = {
    "cuMemAlloc": """
take, give = alloc, free
""",
    "cuMemAllocPitch": """
def take(size):
    pointer, pitch = c_uint64(), c_size_t()
    width = 1000  # a row of 1024
    height = size // 1024
    result = lib.cuMemAllocPitch_v2(byref(pointer), byref(pitch), c_size_t(width),
                                    c_size_t(height), 4)
    return result, pointer.value
give = free
""",
    "cuMemAllocManaged": """
def take(size):
    pointer = c_uint64()
    return lib.cuMemAllocManaged(byref(pointer), c_size_t(size), 1), pointer.value
give = free
""",
    "cuMemAllocAsync": """
def take(size):
    pointer = c_uint64()
    return lib.cuMemAllocAsync(byref(pointer), c_size_t(size), None), pointer.value
def give(pointer):
    return lib.cuMemFreeAsync(c_uint64(pointer), None)
""",
    "cuMemAllocAsync_ptsz": """
def take(size):
    pointer = c_uint64()
    return lib.cuMemAllocAsync_ptsz(byref(pointer), c_size_t(size), None), pointer.value
def give(pointer):
    return lib.cuMemFreeAsync_ptsz(c_uint64(pointer), None)
""",
    "a pool, freed as plain memory": """
class Properties(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("type", "handles", "place", "device")]
    _fields_ += [("rest", ctypes.c_char * 72)]
pool = c_void_p()
def take(size):
    if not pool:
        ok(lib.cuMemPoolCreate(byref(pool), byref(Properties(1, 0, 1, 0))))
    pointer = c_uint64()
    result = lib.cuMemAllocFromPoolAsync(byref(pointer), c_size_t(size), pool, None)
    return result, pointer.value
give = free
""",
    "cuMemCreate": """
class Properties(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("type", "handles", "place", "device")]
    _fields_ += [("rest", ctypes.c_char * 16)]
def take(size):
    handle = c_uint64()
    result = lib.cuMemCreate(byref(handle), c_size_t(size), byref(Properties(1, 0, 1, 0)),
                             c_uint64(0))
    return result, handle.value
def give(handle):
    return lib.cuMemRelease(c_uint64(handle))
""",
    "cuArrayCreate": """
def take(size):
    array = c_void_p()
    shape = (c_uint64 * 3)(16384, size // 16384 // 4, 32 | 1 << 32)
    return lib.cuArrayCreate_v2(byref(array), shape), array
give = lambda array: lib.cuArrayDestroy(array)
""",
    "cuArray3DCreate": """
def take(size):
    array = c_void_p()
    shape = (c_uint64 * 5)(1024, 1024, size >> 22, 16 | 2 << 32, 0)
    return lib.cuArray3DCreate_v2(byref(array), shape), array
give = lambda array: lib.cuArrayDestroy(array)
""",
    "cuImportExternalMemory": """
def take(size):
    memory = c_void_p()
    description = (c_uint64 * 13)(1, 3, 0, size)
    return lib.cuImportExternalMemory(byref(memory), description), memory
give = lambda memory: lib.cuDestroyExternalMemory(memory)
""",
}
# Functions that are found by cuGetProcAddress instead of dlsym.
LOOKED_UP = """
class Found:
    def __init__(self, version, flags):
        self.version, self.flags = version, flags
    def __getattr__(self, name):
        base = name.partition("_")[0]
        address, status = c_void_p(), c_int()
        ask = found_by_itself() if name != "cuGetProcAddress" else lib.cuGetProcAddress_v2
        ok(ask(base.encode(), byref(address), self.version, c_uint64(self.flags), byref(status)))
        return ctypes.CFUNCTYPE(c_int, *TYPES.get(base, ()))(address.value)
def found_by_itself():
    address, status = c_void_p(), c_int()
    ok(lib.cuGetProcAddress_v2(b"cuGetProcAddress", byref(address), 12040, c_uint64(0),
                               byref(status)))
    return ctypes.CFUNCTYPE(c_int, ctypes.c_char_p, c_void_p, c_int, c_uint64, c_void_p)(
        address.value)
TYPES = {
    "cuMemAlloc": (c_void_p, c_size_t),
    "cuMemFree": (c_uint64,),
    "cuMemAllocAsync": (c_void_p, c_size_t, c_void_p),
    "cuMemFreeAsync": (c_uint64, c_void_p),
}
"""


def counted(container: Container, take_and_give: str) -> list[float]:
    """Allocates 512 MiB until it is refused, and frees all. Returns the number of allocations, the
    last result, the free MiB before freeing, and those after."""
    script = f"""
{CUDA}
begin()
{take_and_give}
things, result = fill(take)
print(len(things), result, free_mib())
for thing in things:
    ok(give(thing))
ok(lib.cuCtxSynchronize())   # until then, pools keep what was freed
print(free_mib())
"""
    return [float(word) for word in container.python(script).split()]


@pytest.mark.parametrize("name", WAYS_TO_ALLOCATE)
def test_each_way_to_allocate_is_counted_and_given_back(container: Container, name: str) -> None:
    assert counted(container, WAYS_TO_ALLOCATE[name]) == [6, 2, 3226 - 6 * 512, 3226]


@pytest.mark.parametrize("flags", [0, 1, 2])
@pytest.mark.parametrize("name", ["cuMemAlloc", "cuMemAllocAsync"])
def test_functions_from_cuGetProcAddress_are_counted(
    container: Container, name: str, flags: int
) -> None:
    found = f"{LOOKED_UP}\nplain = Found(12040, {flags})\n"
    way = WAYS_TO_ALLOCATE[name].replace("lib.", "plain.")
    if name == "cuMemAlloc":
        way = """
def take(size):
    pointer = c_uint64()
    return plain.cuMemAlloc(byref(pointer), size), pointer.value
give = lambda pointer: plain.cuMemFree(pointer)
"""
    assert counted(container, found + way) == [6, 2, 3226 - 6 * 512, 3226]


def test_all_levels_of_a_mipmapped_array_are_counted(container: Container) -> None:
    script = f"""
{CUDA}
begin()
array = c_void_p()
shape = (c_uint64 * 5)(8192, 8192, 1, 32 | 1 << 32, 0)
ok(lib.cuMipmappedArrayCreate(byref(array), shape, 3))
print(free_mib())
ok(lib.cuMipmappedArrayDestroy(array))
print(free_mib())
"""
    assert container.python(script).split() == [str(3226.0 - 256 - 64 - 16), "3226.0"]


POOL = f"""
{CUDA}
begin()
pool = c_void_p()
ok(lib.cuDeviceGetDefaultMemPool(byref(pool), 0))
def keep(size):
    ok(lib.cuMemPoolSetAttribute(pool, 4, byref(c_uint64(size))))
def take(size):
    pointer = c_uint64()
    return lib.cuMemAllocAsync(byref(pointer), c_size_t(size), None), pointer.value
def give(pointer):
    ok(lib.cuMemFreeAsync(c_uint64(pointer), None))
"""


def test_memory_that_a_pool_keeps_is_counted_until_it_is_trimmed(container: Container) -> None:
    script = f"""
{POOL}
keep(2**64 - 1)
pointer = take(3000 * MIB)[1]
give(pointer)
print(free_mib())
again = take(2000 * MIB)[1]   # out of what is kept
print(free_mib())
print(alloc(1000 * MIB)[0], free_mib())   # the pool gives back for it
give(again)
ok(lib.cuMemPoolTrimTo(pool, c_size_t(0)))
print(free_mib())
"""
    assert container.python(script).split() == ["226.0", "226.0", "0", "226.0", "2226.0"]


def test_a_destroyed_pool_gives_back_the_memory_that_it_kept(container: Container) -> None:
    script = f"""
{POOL}
{WAYS_TO_ALLOCATE["a pool, freed as plain memory"]}
_, pointer = take(1000 * MIB)
keep(2**64 - 1)
give(pointer)
ok(lib.cuMemPoolDestroy(pool))
print(free_mib())
"""
    assert container.python(script) == "3226.0\n"


GRAPH = f"""
{CUDA}
begin()
class Allocation(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("type", "handles", "place", "device")]
    _fields_ += [("more", ctypes.c_char * 88), ("size", c_size_t), ("pointer", c_uint64)]
class Parameters(ctypes.Structure):
    _fields_ = [("type", c_int), ("reserved", c_int * 3), ("alloc", Allocation)]
def allocation(mib):
    return Allocation(1, 0, 1, 0, b"", mib * MIB)
def graph(*nodes):
    made, node, runnable = c_void_p(), c_void_p(), c_void_p()
    ok(lib.cuGraphCreate(byref(made), 0))
    for mib in nodes:
        result = lib.cuGraphAddMemAllocNode(byref(node), made, None, c_size_t(0),
                                            byref(allocation(mib)))
        if result:
            return result
    ok(lib.cuGraphInstantiateWithFlags(byref(runnable), made, c_uint64(0)))
    ok(lib.cuGraphDestroy(made))
    return runnable
"""


def test_graph_memory_is_counted_from_the_first_launch_on(container: Container) -> None:
    script = f"""
{GRAPH}
first = graph(1000)
print(free_mib())
ok(lib.cuGraphLaunch(first, None))
ok(lib.cuGraphLaunch(first, None))
print(free_mib())
ok(lib.cuGraphExecDestroy(first))
print(free_mib(), alloc(3000 * MIB)[0], free_mib())   # trimmed for it
"""
    assert container.python(script).split() == ["3226.0", "2226.0", "2226.0", "0", "226.0"]


@pytest.mark.parametrize("version", ["", "_v2", "_v3"])
def test_a_graph_node_that_allocates_too_much_is_refused(
    container: Container, version: str
) -> None:
    edges = "None, " if version else ""
    script = f"""
{GRAPH}
made, node = c_void_p(), c_void_p()
ok(lib.cuGraphCreate(byref(made), 0))
parameters = Parameters(10, (c_int * 3)(), allocation(3227))
print(graph(3227), lib.cuGraphAddNode{version}(byref(node), made, None, {edges}c_size_t(0),
                                               byref(parameters)), free_mib())
"""
    assert container.python(script).split() == ["2", "2", "3226.0"]


def test_graphs_can_pass_the_limit_by_one_launch_only(container: Container) -> None:
    """docs/limits.md lists this."""
    script = f"""
{GRAPH}
graphs = [graph(2000) for _ in range(3)]
print(*(lib.cuGraphLaunch(each, None) for each in graphs), free_mib(), alloc(MIB)[0])
ok(lib.cuGraphExecDestroy(graphs[0]))
print(lib.cuGraphLaunch(graphs[2], None), alloc(MIB)[0])
"""
    assert container.python(script).split() == ["0", "0", "2", "0.0", "2", "0", "2"]


def test_released_memory_stays_counted_while_it_is_mapped(container: Container) -> None:
    script = f"""
{CUDA}
begin()
{WAYS_TO_ALLOCATE["cuMemCreate"]}
size, address, again = 64 * MIB, c_uint64(), c_uint64()
_, handle = take(size)
ok(lib.cuMemAddressReserve(byref(address), c_size_t(2 * size), c_size_t(0), c_uint64(0),
                           c_uint64(0)))
for half in 0, size:
    ok(lib.cuMemMap(c_uint64(address.value + half), c_size_t(size), c_size_t(0), c_uint64(handle),
                    c_uint64(0)))
ok(give(handle))
print(free_mib())
ok(lib.cuMemRetainAllocationHandle(byref(again), c_void_p(address.value)))
ok(lib.cuMemUnmap(c_uint64(address.value), c_size_t(2 * size)))
print(free_mib())
ok(give(again.value))
print(free_mib())
"""
    assert container.python(script).split() == ["3162.0", "3162.0", "3226.0"]


def test_destroying_a_context_gives_back_its_memory(container: Container) -> None:
    script = f"""
{CUDA}
begin()
alloc(100 * MIB)
other = c_void_p()
ok(lib.cuCtxCreate_v2(byref(other), 0, 0))
alloc(200 * MIB)
print(free_mib())
ok(lib.cuCtxDestroy_v2(other))
begin()
print(free_mib())
ok(lib.cuDevicePrimaryCtxReset_v2(0))
begin()
print(free_mib())
"""
    assert container.python(script).split() == ["2926.0", "3126.0", "3226.0"]


def test_freeing_an_unknown_address_returns_the_result_of_the_driver(container: Container) -> None:
    script = f"{CUDA}\nbegin()\nprint(free(0), free(12345))"
    assert container.python(script) == "0 1\n"


def test_an_allocation_that_the_driver_refuses_is_not_counted(container: Container) -> None:
    script = f"""
{CUDA}
begin()
odd_flags = 77
print(alloc(0)[0], lib.cuMemAllocManaged(byref(c_uint64()), c_size_t(MIB), odd_flags), free_mib())
"""
    assert container.python(script) == "1 1 3226.0\n"


def test_absurd_sizes_are_refused_without_being_counted(container: Container) -> None:
    script = f"""
{CUDA}
begin()
print(*(alloc(size)[0] for size in (2**64 - 1, 2**63, 2**52, 3226 * MIB + 1)), free_mib())
print(*(lib.cuMemAllocPitch_v2(byref(c_uint64()), byref(c_size_t()), c_size_t(2**40),
                               c_size_t(2**40), 4) for _ in range(1)), free_mib())
print(alloc(3226 * MIB)[0], free_mib())
"""
    assert container.python(script).split() == [*"2222", "3226.0", "2", "3226.0", "0", "0.0"]


def test_the_old_interface_with_32_bit_addresses_is_refused(container: Container) -> None:
    script = f"{CUDA}\nbegin()\nprint(lib.cuMemAlloc(byref(c_uint()), 4096))"
    assert container.python(script) == "801\n"
