"""NvmlLimits: memory limits of cgroups through NVML.

nvidia-ml-py does not know these two functions yet, so their structs are here.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

import pynvml

from gpupool.hardware.memory_limits import (
    NO_LIMITS,
    Found,
    LimitsRefused,
    LimitsUnsupported,
    MemoryLimits,
)

_SET = "nvmlDeviceSetMemoryLimits_v1"
_GET = "nvmlDeviceGetMemoryLimits_v1"
# NOT_FOUND: no limit here. NOT_SUPPORTED: the same, from a driver that keeps its own table; or the
# driver has no limits.
_NONE_SET = (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED)
_UNSUPPORTED = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)


class _SetLimits(ctypes.Structure):
    _fields_ = (
        ("name_space", ctypes.c_char_p),
        ("soft", ctypes.c_ulonglong),
        ("hard", ctypes.c_ulonglong),
    )


class _GetLimits(ctypes.Structure):
    _fields_ = (
        ("name_space", ctypes.c_char_p),
        ("soft", ctypes.c_ulonglong),
        ("hard", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class NvmlLimits:
    """Initialises NVML for each call: it counts, and a look may shut its own session down."""

    def set(self, cgroup: str, uuid: str, limits: MemoryLimits) -> None:
        wanted = _SetLimits(cgroup.encode(), limits.soft, limits.hard)
        with _card(cgroup, uuid) as card:
            _call(_SET, card, wanted)

    def get(self, cgroup: str, uuid: str) -> Found:
        found = _GetLimits(cgroup.encode())
        with _card(cgroup, uuid) as card:
            try:
                _call(_GET, card, found)
            except pynvml.NVMLError as error:
                if error.value in (*_NONE_SET, *_UNSUPPORTED):
                    return Found(NO_LIMITS)
                raise
        return Found(MemoryLimits(found.soft, found.hard), found.used)


@contextlib.contextmanager
def _card(cgroup: str, uuid: str) -> Iterator[Any]:
    try:
        pynvml.nvmlInit()
        try:
            yield pynvml.nvmlDeviceGetHandleByUUID(uuid)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        kind = LimitsUnsupported if error.value in _UNSUPPORTED else LimitsRefused
        raise kind(f"memory limits of {cgroup} on card {uuid}: {error}") from error


def _call(name: str, card: Any, limits: ctypes.Structure) -> None:
    """Raises NVMLError."""
    result = pynvml._nvmlGetFunctionPointer(name)(card, ctypes.byref(limits))
    if result:
        raise pynvml.NVMLError(result)
