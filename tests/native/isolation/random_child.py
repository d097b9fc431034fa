"""A program that uses every kind of memory of a card, in the order in which it is told to.

Each line of input names a step and three numbers: which thing, which other thing, how many bytes.
The answer is a line of JSON: the result of the driver, the bytes that the step asked for, and the
bytes of imported memory, which the simulated driver does not count. Steps about things that do not
exist any more are meant: programs make such mistakes, too.
"""

import ctypes
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

PAGE = 2 << 20  # of cuMemCreate
PLACES = 5  # so many pages of addresses: few, so that mappings lie side by side
lib = ctypes.CDLL("libcuda.so.1")


class Properties(ctypes.Structure):
    """CUmemAllocationProp and CUmemPoolProps: type, handles, place, device."""

    _fields_ = (("words", c_int * 4), ("rest", ctypes.c_char * 72))


class Allocation(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS"""

    _fields_ = (
        ("properties", Properties),
        ("access", c_void_p),
        ("count", c_size_t),
        ("size", c_size_t),
        ("pointer", c_uint64),
    )


def on_card(kind: int = 1, place: int = 1) -> Properties:
    return Properties((c_int * 4)(kind, 0, place, 0))


class Things:
    """What was made, by kind. Nothing is taken out: a handle may be used after its end."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[int]] = {}
        self.external: dict[int, tuple[int, int]] = {}  # handle: bytes, context
        self.wanted = 0

    def pick(self, kind: str, number: int) -> int:
        made = self.by_kind.get(kind, [])
        return made[-1 - number % min(len(made), 8)] if made else 0

    def make(self, kind: str, function: Callable[..., int], *arguments: object) -> int:
        handle = c_uint64()
        result = function(byref(handle), *arguments)
        if result == 0:
            self.by_kind.setdefault(kind, []).append(handle.value)
        return result

    def end_context(self, result: int, context: int) -> int:
        if result == 0:
            ended = [handle for handle, (_, owner) in self.external.items() if owner == context]
            for handle in ended:
                del self.external[handle]
        return result


things = Things()
pick, make = things.pick, things.make


def stream(number: int) -> c_void_p:
    return c_void_p(pick("stream", number) if number % 3 else None)


def either(function: str, number: int) -> Callable[..., int]:
    """As it is, or for programs that are compiled with a default stream for each thread."""
    found: Callable[..., int] = getattr(lib, function + ("", "_ptsz")[number % 2])
    return found


def current() -> int:
    context = c_void_p()
    lib.cuCtxGetCurrent(byref(context))
    return context.value or 0


def retain(_a: int, _b: int, _size: int) -> int:
    result = make("context", lib.cuDevicePrimaryCtxRetain, 0)
    return result or int(lib.cuCtxSetCurrent(c_void_p(pick("context", 0))))


def release(a: int, b: int, _size: int) -> int:
    active, flags, primary = c_int(), c_int(), c_uint64()
    ask = (0, byref(flags), byref(active))
    lib.cuDevicePrimaryCtxGetState(*ask)
    if active.value and lib.cuDevicePrimaryCtxRetain(byref(primary), 0) == 0:
        lib.cuDevicePrimaryCtxRelease_v2(0)
    end = lib.cuDevicePrimaryCtxReset_v2 if a % 2 else lib.cuDevicePrimaryCtxRelease_v2
    if b % 2:  # with the last context, the driver gives more back
        for number in range(8):
            destroy_context(number, 0, 0)
    result = int(end(0))
    lib.cuDevicePrimaryCtxGetState(*ask)
    things.end_context(result, -1 if active.value else primary.value)
    retain(0, 0, 0)  # a program without a context can do little
    return result


def destroy_context(a: int, _b: int, _size: int) -> int:
    context = pick("own context", a)
    result = things.end_context(int(lib.cuCtxDestroy_v2(c_void_p(context))), context)
    lib.cuCtxSetCurrent(c_void_p(pick("context", 0)))
    return result


def end_green(a: int, _b: int, _size: int) -> int:
    """May be the end of the primary context."""
    active, flags = c_int(), c_int()
    result = int(lib.cuGreenCtxDestroy(c_void_p(pick("green", a))))
    lib.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active))
    return things.end_context(result, -1 if active.value else pick("context", 0))


def use(a: int, b: int, _size: int) -> int:
    context = pick("context" if b % 2 else "own context", a)
    return int(lib.cuCtxSetCurrent(c_void_p(context or None)))


def pitch(a: int, _b: int, size: int) -> int:
    row, width, height = c_size_t(), 100 + a * 37 % 2000, 1 + size // 2048
    things.wanted = (width + 511) // 512 * 512 * height
    return make("pointer", lib.cuMemAllocPitch_v2, byref(row), c_size_t(width), c_size_t(height), 4)


def array(a: int, b: int, size: int) -> int:
    width, height, channels = 256, 1 + size // 1024, 1 + a % 2 * 3
    shape_format, each = ((1, 1), (2, 2), (32, 4))[b % 3]
    things.wanted = width * height * channels * each
    shape = (c_uint64 * 3)(width, height, shape_format | channels << 32)
    return make("array", lib.cuArrayCreate_v2, shape)


def array_3d(a: int, _b: int, size: int) -> int:
    height, depth = 1 + size // 4096, 1 + a % 4
    things.wanted = 4 * 64 * height * depth
    return make("array", lib.cuArray3DCreate_v2, (c_uint64 * 5)(64, height, depth, 32 | 1 << 32, 0))


def mipmap(a: int, _b: int, size: int) -> int:
    width, height, levels = 300, 1 + size // 1200, 1 + a % 5
    things.wanted = sum(4 * (width >> i) * max(1, height >> i) for i in range(levels))
    shape = (c_uint64 * 5)(width, height, 0, 32 | 1 << 32, 0)
    return make("mipmap", lib.cuMipmappedArrayCreate, shape, levels)


def imported(_a: int, _b: int, size: int) -> int:
    result = make("external", lib.cuImportExternalMemory, (c_uint64 * 13)(1, 3, 0, size))
    if result == 0:
        things.external[pick("external", 0)] = (-(-size // 512) * 512, current())
    return result


def destroy_imported(a: int, _b: int, _size: int) -> int:
    external = pick("external", a)
    result = int(lib.cuDestroyExternalMemory(c_void_p(external)))
    if result == 0:
        things.external.pop(external, None)
    return result


def pool_alloc(a: int, b: int, size: int) -> int:
    pool, function = c_void_p(pick("pool", a)), either("cuMemAllocFromPoolAsync", b)
    return make("pooled", function, c_size_t(size), pool, stream(b))


def keep(a: int, _b: int, size: int) -> int:
    pool = c_void_p(pick("pool", a))
    return int(lib.cuMemPoolSetAttribute(pool, 4, byref(c_uint64(size * 2))))


def physical(_a: int, _b: int, size: int) -> int:
    things.wanted = -(-size // PAGE) * PAGE
    properties = byref(on_card())
    return make("physical", lib.cuMemCreate, c_size_t(things.wanted), properties, c_uint64(0))


def on_host(_a: int, _b: int, _size: int) -> int:
    """Memory that is not counted, but can be mapped beside memory that is."""
    properties = byref(on_card(place=2))
    return make("physical", lib.cuMemCreate, c_size_t(PAGE), properties, c_uint64(0))


def place_of(number: int) -> c_uint64:
    if "addresses" not in things.by_kind:
        zeros = (c_size_t(0), c_uint64(0), c_uint64(0))
        make("addresses", lib.cuMemAddressReserve, c_size_t(PLACES * PAGE), *zeros)
    return c_uint64(pick("addresses", 0) + number % PLACES * PAGE)


def map_at(place: int, handle: int) -> int:
    where = place_of(place)
    result = lib.cuMemMap(where, c_size_t(PAGE), c_size_t(0), c_uint64(handle), c_uint64(0))
    if result == 0:
        things.by_kind.setdefault("mapped", []).append(place % PLACES)
    return int(result)


def map_pages(a: int, b: int, _size: int) -> int:
    """Programs often map memory just after they made it, and need its handle no longer."""
    if a > 5:
        return map_at(b, pick("physical", a))
    for place, make_one in (b, (on_host, physical)[a % 2]), (b + 1, (physical, on_host)[a % 2]):
        if make_one(0, 0, PAGE) == 0:
            map_at(place, pick("physical", 0))
            lib.cuMemRelease(c_uint64(pick("physical", 0)))
    return 0


def unmap_pages(a: int, b: int, _size: int) -> int:
    place = place_of(pick("mapped", b))
    return int(lib.cuMemUnmap(place, c_size_t((1 + a % 3) * PAGE)))


def graph(a: int, _b: int, size: int) -> int:
    made, node = c_void_p(), c_void_p()
    result = int(lib.cuGraphCreate(byref(made), 0))
    for _ in range(a % 3):
        parameters = byref(Allocation(on_card(), None, 0, size))
        add = lib.cuGraphAddMemAllocNode
        result = result or add(byref(node), made, None, c_size_t(0), parameters)
    result = result or make("graph", lib.cuGraphInstantiateWithFlags, made, c_uint64(0))
    lib.cuGraphDestroy(made)
    return result


def launch(a: int, b: int, size: int) -> int:
    if a % 2:
        graph(a, b, min(size, 5 << 20))
    return int(lib.cuGraphLaunch(c_void_p(pick("graph", a // 2)), stream(b)))


def kernel(a: int, _b: int, _size: int) -> int:
    if make("module", lib.cuModuleLoadData, b"any"):
        return 0
    module = c_void_p(pick("module", 0))
    make("function", lib.cuModuleGetFunction, module, b"busy_3000us")
    function = c_void_p(pick("function", 0))
    return int(lib.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream(a), None, None))


def forked(_a: int, _b: int, size: int) -> int:
    """What the child of a fork does has no effect on the memory of its parent."""
    child = os.fork()
    if child == 0:
        lib.cuMemFree_v2(c_uint64(pick("pointer", 0)))
        lib.cuMemRelease(c_uint64(pick("physical", 0)))
        lib.cuMemAlloc_v2(byref(c_uint64()), c_size_t(size))
        lib.cuDevicePrimaryCtxReset_v2(0)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def one_thread(seed: int, context: int, size: int) -> None:
    chosen = random.Random(seed)
    lib.cuCtxSetCurrent(c_void_p(context))
    zero = c_uint64(0)
    made: list[tuple[int, c_uint64]] = []
    for _ in range(30):
        kind, pointer, bytes_ = chosen.randrange(3), c_uint64(), c_size_t(chosen.randint(1, size))
        if kind == 0:
            result = lib.cuMemAlloc_v2(byref(pointer), bytes_)
        elif kind == 1:
            result = lib.cuMemAllocAsync(byref(pointer), bytes_, None)
        else:
            result = lib.cuMemCreate(byref(pointer), c_size_t(PAGE), byref(on_card()), zero)
        if result == 0:
            made.append((kind, pointer))
        if made and (result or chosen.random() < 0.5):
            give_back(*made.pop(chosen.randrange(len(made))))
        if chosen.random() < 0.1:
            lib.cuCtxSynchronize()
    for kind, pointer in made:
        give_back(kind, pointer)


def give_back(kind: int, pointer: c_uint64) -> None:
    if kind == 0:
        lib.cuMemFree_v2(pointer)
    elif kind == 1:
        lib.cuMemFreeAsync(pointer, None)
    else:
        lib.cuMemRelease(pointer)


def threads(a: int, _b: int, size: int) -> int:
    context = current()
    if not context:
        return 0
    running = [threading.Thread(target=one_thread, args=(a + n, context, size)) for n in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return 0


def info(_a: int, _b: int, _size: int) -> int:
    """Reading the memory also gives back what dead processes held."""
    free, total = c_size_t(), c_size_t()
    result = int(lib.cuMemGetInfo_v2(byref(free), byref(total)))
    things.wanted = free.value
    return result


def step(function: str, kind: str, handle: type) -> Callable[[int, int, int], int]:
    """Calls the function with one thing of this kind."""
    return lambda a, b, size: int(getattr(lib, function)(handle(pick(kind, a))))


STEPS: dict[str, Callable[[int, int, int], int]] = {
    "retain": retain,
    "release": release,
    "create context": lambda a, b, size: make("own context", lib.cuCtxCreate_v2, 0, 0),
    "new context": lambda a, b, size: make("own context", lib.cuCtxCreate_v4, None, 0, 0),
    "destroy context": destroy_context,
    "green": lambda a, b, size: make("green", lib.cuGreenCtxCreate, c_void_p(1), 0, 1),
    "end green": end_green,
    "use": use,
    "alloc": lambda a, b, size: make("pointer", lib.cuMemAlloc_v2, c_size_t(size)),
    "pitch": pitch,
    "managed": lambda a, b, size: make("pointer", lib.cuMemAllocManaged, c_size_t(size), 1),
    "free": step("cuMemFree_v2", "pointer", c_uint64),
    "array": array,
    "array 3d": array_3d,
    "free array": step("cuArrayDestroy", "array", c_void_p),
    "mipmap": mipmap,
    "free mipmap": step("cuMipmappedArrayDestroy", "mipmap", c_void_p),
    "import": imported,
    "end import": destroy_imported,
    "stream": lambda a, b, size: make("stream", lib.cuStreamCreate, 0),
    "end stream": step("cuStreamDestroy_v2", "stream", c_void_p),
    "wait": lambda a, b, size: lib.cuStreamSynchronize(stream(a)),
    "wait for all": lambda a, b, size: lib.cuCtxSynchronize(),
    "event": lambda a, b, size: make("event", lib.cuEventCreate, 0),
    "record": lambda a, b, size: lib.cuEventRecord(c_void_p(pick("event", a)), stream(b)),
    "wait for event": step("cuEventSynchronize", "event", c_void_p),
    "async": lambda a, b, size: make(
        "pooled", either("cuMemAllocAsync", a), c_size_t(size), stream(b)
    ),
    "free async": lambda a, b, size: either("cuMemFreeAsync", b)(
        c_uint64(pick("pooled", a)), stream(b)
    ),
    "free pooled": step("cuMemFree_v2", "pooled", c_uint64),
    "pool": lambda a, b, size: make("pool", lib.cuMemPoolCreate, byref(on_card(1 + a % 2))),
    "end pool": step("cuMemPoolDestroy", "pool", c_void_p),
    "set pool": lambda a, b, size: lib.cuDeviceSetMemPool(0, c_void_p(pick("pool", a))),
    "pool alloc": pool_alloc,
    "keep": keep,
    "trim": lambda a, b, size: lib.cuMemPoolTrimTo(c_void_p(pick("pool", a)), c_size_t(size)),
    "physical": physical,
    "on host": on_host,
    "end physical": step("cuMemRelease", "physical", c_uint64),
    "map": map_pages,
    "unmap": unmap_pages,
    "handle": lambda a, b, size: make(
        "physical", lib.cuMemRetainAllocationHandle, place_of(pick("mapped", b))
    ),
    "graph": graph,
    "launch": launch,
    "end graph": step("cuGraphExecDestroy", "graph", c_void_p),
    "trim graphs": lambda a, b, size: lib.cuDeviceGraphMemTrim(0),
    "kernel": kernel,
    "fork": forked,
    "threads": threads,
    "info": info,
}


def main() -> None:
    lib.cuInit(0)
    for line in sys.stdin:
        name, a, b, size = json.loads(line)
        things.wanted = size
        result = int(STEPS[name](a, b, size))
        external = sum(size for size, _ in things.external.values())
        sys.stdout.write(json.dumps([result, things.wanted, external]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
