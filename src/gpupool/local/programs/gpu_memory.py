"""Allocates GPU memory through CUDA's driver API, and keeps it.

    gpu_memory.py               all memory of all visible cards
    gpu_memory.py --allowed     of each card, the fraction
                                ALIYUN_COM_GPU_MEM_CONTAINER / ALIYUN_COM_GPU_MEM_DEV

It runs in any Python, so it imports nothing of ours.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from typing import NamedTuple

_OUT_OF_MEMORY = 2
_MIB = 1024 * 1024
_LARGEST, _SMALLEST = 1024 * _MIB, _MIB
_MINE, _OF = "ALIYUN_COM_GPU_MEM_CONTAINER", "ALIYUN_COM_GPU_MEM_DEV"


class CudaError(Exception):
    pass


class Gpu(NamedTuple):
    number: int
    name: str
    memory: int  # bytes


class Cuda:
    """The CUDA driver. Raises CudaError when there is none."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"no CUDA driver: {error}") from error
        self._do("cuInit", 0)

    def gpus(self) -> list[Gpu]:
        count = ctypes.c_int()
        self._do("cuDeviceGetCount", ctypes.byref(count))
        return [self._gpu(number) for number in range(count.value)]

    def take(self, gpu: Gpu, most: int) -> int:
        """Allocates as much as possible, at most `most` bytes; returns how much. Never freed."""
        context = ctypes.c_void_p()
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device(gpu.number))
        self._do("cuCtxSetCurrent", context)
        got, size = 0, _LARGEST
        while size >= _SMALLEST:
            if got + size > most or not self._allocate(size):
                size //= 2
            else:
                got += size
        return got

    def _allocate(self, size: int) -> bool:
        place = ctypes.c_uint64()
        code = self._library.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size))
        if code not in (0, _OUT_OF_MEMORY):
            raise CudaError(f"cuMemAlloc: error {code}")
        return bool(code == 0)

    def _gpu(self, number: int) -> Gpu:
        name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
        device = self._device(number)
        self._do("cuDeviceGetName", name, len(name), device)
        self._do("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        return Gpu(number, name.value.decode(errors="replace"), memory.value)

    def _device(self, number: int) -> ctypes.c_int:
        device = ctypes.c_int()
        self._do("cuDeviceGet", ctypes.byref(device), number)
        return device

    def _do(self, function: str, *arguments: object) -> None:
        code = getattr(self._library, function)(*arguments)
        if code:
            raise CudaError(f"{function}: error {code}")


def allowed(gpu: Gpu, env: Mapping[str, str]) -> int:
    """How many bytes of the card the environment allows. Raises CudaError if it does not say."""
    try:
        part, whole = int(env[_MINE]), int(env[_OF])
        return gpu.memory * part // whole
    except (KeyError, ValueError, ZeroDivisionError) as error:
        raise CudaError(f"{_MINE} and {_OF} do not say how much may be used: {error!r}") from error


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    is_limited = "--allowed" in sys.argv[1:]
    try:
        cuda = Cuda()
        gpus = cuda.gpus()
        if not gpus:
            raise CudaError("no GPU is visible")
        for gpu in gpus:
            got = cuda.take(gpu, allowed(gpu, os.environ) if is_limited else gpu.memory)
            _say(f"GPU {gpu.number}, {gpu.name}: holding {got // _MIB} of {gpu.memory // _MIB} MiB")
    except CudaError as error:
        _say(str(error))
        sys.exit(1)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
