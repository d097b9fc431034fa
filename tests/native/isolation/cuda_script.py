"""The beginning of the tests' scripts: functions that use CUDA through ctypes."""

CUDA = """
import ctypes, os, sys
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
MIB = 1 << 20
OUT_OF_MEMORY = 2
lib = ctypes.CDLL("libcuda.so.1")

def ok(result):
    assert result == 0, result

def begin(device=0):
    ok(lib.cuInit(0))
    context = c_void_p()
    ok(lib.cuDevicePrimaryCtxRetain(byref(context), device))
    ok(lib.cuCtxSetCurrent(context))
    return context

def free_mib():
    free, total = c_size_t(), c_size_t()
    ok(lib.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value / MIB

def alloc(size):
    pointer = c_uint64()
    result = lib.cuMemAlloc_v2(byref(pointer), c_size_t(size))
    return result, pointer.value

def free(pointer):
    return lib.cuMemFree_v2(c_uint64(pointer))

def fill(take, size=512 * MIB):
    "Allocates until it is refused; returns the allocations and the last result."
    found = []
    while True:
        result, thing = take(size)
        if result:
            return found, result
        found.append(thing)
"""
