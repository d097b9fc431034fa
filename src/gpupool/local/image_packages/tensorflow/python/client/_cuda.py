"""Asks the CUDA driver which cards this process sees."""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import NamedTuple

_NO_DEVICE = 100
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class Card(NamedTuple):
    number: int
    name: str
    bus_id: str
    capability: str
    free: int  # bytes


class CudaError(RuntimeError):
    pass


def cards() -> list[Card]:
    """None without a driver or without a card: programs then use the CPU."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    code = library.cuInit(0)
    if code == _NO_DEVICE:
        return []
    _check(code, "cuInit")
    count = ctypes.c_int()
    _check(library.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    return [_card(library, number) for number in range(count.value)]


def _card(library: ctypes.CDLL, number: int) -> Card:
    device = ctypes.c_int()
    _check(library.cuDeviceGet(ctypes.byref(device), number), "cuDeviceGet")
    name, bus_id = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    _check(library.cuDeviceGetName(name, len(name), device), "cuDeviceGetName")
    _check(library.cuDeviceGetPCIBusId(bus_id, len(bus_id), device), "cuDeviceGetPCIBusId")
    numbers = []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        code = library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        _check(code, "cuDeviceGetAttribute")
        numbers.append(str(value.value))
    return Card(
        number,
        name.value.decode(errors="replace"),
        bus_id.value.decode(errors="replace").lower(),
        ".".join(numbers),
        _free(library, device),
    )


def _free(library: ctypes.CDLL, device: ctypes.c_int) -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    with _context(library, device):
        _check(library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    return free.value


@contextlib.contextmanager
def _context(library: ctypes.CDLL, device: ctypes.c_int) -> Iterator[None]:
    """The card's primary context, given back at the end: a question must not keep memory."""
    context = ctypes.c_void_p()
    code = library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    _check(code, "cuDevicePrimaryCtxRetain")
    try:
        _check(library.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        try:
            yield
        finally:
            library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    finally:
        library.cuDevicePrimaryCtxRelease_v2(device)


def _check(code: int, function: str) -> None:
    if code:
        raise CudaError(f"{function}: error {code}")
