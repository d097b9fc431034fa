"""What processes hold of cards, from NVML. Every function may raise NVMLError."""

import contextlib
from collections.abc import Callable
from typing import Any

import pynvml

from gpupool.hardware.driver import Loads, ProgramLoad, ProgramUse, Uses

IsOfPod = Callable[[int], bool]  # whether the process with this pid belongs to a pod

NOT_LOADED = (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
# Whatever card was asked, these say something of the driver.
OF_THE_DRIVER = (
    *NOT_LOADED,
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)
_MIB = 1 << 20
_MOST_PERCENT = 100


def uses() -> Uses:
    programs: list[ProgramUse] = []
    read, untold = set(), set()
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
            # A process that computes and draws is in both lists, with all its memory in each.
            held = _drawing(handle) | _computing(handle)
        except pynvml.NVMLError as error:
            if error.value in OF_THE_DRIVER:
                raise
            continue
        read.add(uuid)
        if None in held.values():
            untold.add(uuid)
        programs += [ProgramUse(pid, uuid, used // _MIB) for pid, used in held.items() if used]
    return Uses(tuple(programs), frozenset(read), frozenset(untold))


def loads(since_us: int) -> Loads:
    programs: list[ProgramLoad] = []
    told = set()
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
            busy = _busy(handle, since_us)
        except pynvml.NVMLError as error:
            if error.value in OF_THE_DRIVER:
                raise
            continue
        told.add(uuid)
        programs += [ProgramLoad(pid, uuid, percent) for pid, percent in busy.items()]
    return Loads(tuple(programs), frozenset(told))


def _busy(handle: Any, since_us: int) -> dict[int, int]:
    """pid -> percent."""
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_FOUND:  # no process has computed
            return {}
        raise
    # A process may have several samples; the newest counts. Drivers fill the places that they do
    # not use with zeros, or with nonsense.
    return {
        sample.pid: sample.smUtil
        for sample in sorted(samples, key=lambda sample: sample.timeStamp)
        if sample.pid and sample.smUtil <= _MOST_PERCENT
    }


def outside_mib(handle: Any, used: int, is_of_pod: IsOfPod) -> int:
    """Memory that is in use, but neither by a computing process nor by one of a pod; 0 if the
    driver does not tell. `used` is of nvmlMemory_t."""
    with contextlib.suppress(pynvml.NVMLError):
        # What the driver reserves for itself does not count; newer drivers tell it separately.
        used = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used
    try:
        held, drawing = _computing(handle), _drawing(handle)
    except pynvml.NVMLError:
        return 0
    held |= {pid: part for pid, part in drawing.items() if pid not in held and is_of_pod(pid)}
    parts = [part for part in held.values() if part is not None]
    if len(parts) < len(held):  # this driver does not tell the memory of processes
        return 0
    return max(0, used - sum(parts)) // _MIB


def _computing(handle: Any) -> dict[int, int | None]:
    """pid -> bytes; None: the driver does not tell them."""
    listed = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return {process.pid: process.usedGpuMemory for process in listed}


def _drawing(handle: Any) -> dict[int, int | None]:
    try:
        listed = pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_SUPPORTED:  # this card cannot draw
            return {}
        raise
    return {process.pid: process.usedGpuMemory for process in listed}
