"""The beginning of scripts that call the simulated driver through ctypes, as a program does."""

BEGIN = """
import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

MIB = 1 << 20
OK, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 1, 2, 3
INVALID_CONTEXT, INVALID_HANDLE, NOT_READY, CONTEXT_IS_DESTROYED = 201, 400, 600, 709
cuda = ctypes.CDLL("libcuda.so.1")


class Properties(ctypes.Structure):  # CUmemPoolProps and CUmemAllocationProp: memory of card 0
    _fields_ = [(name, c_int) for name in ("type", "handles", "place", "device")]
    _fields_ += [("rest", ctypes.c_char * 72)]


ON_CARD = Properties(1, 0, 1, 0)


def ok(result):
    assert result == OK, result


def begin(card=0):
    context = c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(byref(context), card))
    ok(cuda.cuCtxSetCurrent(context))
    return context


def made(function, *arguments):
    handle = c_void_p()
    ok(function(byref(handle), *arguments))
    return handle


def alloc(size, function=None, *more):
    pointer = c_uint64()
    ok((function or cuda.cuMemAlloc_v2)(byref(pointer), c_size_t(size), *more))
    return pointer


def used_mib():
    free, total = c_size_t(), c_size_t()
    ok(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    return (total.value - free.value) // MIB


def kernel(name):
    module = made(cuda.cuModuleLoadData, b"any")
    return made(cuda.cuModuleGetFunction, module, name.encode())


def launch(function, stream=None):
    ok(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, None, None))
"""
