"""Readings of all cards, from NVML. What the driver does not know or support is None."""

from collections.abc import Callable
from typing import Any

import pynvml

from gpupool.core.readings import CardReading
from gpupool.hardware.nvml_gpm import Gpm
from gpupool.hardware.nvml_processes import OF_THE_DRIVER

_MIB = 1 << 20
# Some drivers answer with all bits set, or other nonsense, where they mean "unknown".
_MOST_PERCENT = 100
_MOST_CELSIUS = 1000
_MOST_MILLIWATTS = 10**8
_MOST_MEGAHERTZ = 10**5
_MOST_MILLIJOULES = 2**62


def readings(gpm: Gpm) -> tuple[CardReading, ...]:
    """Of the cards that answer, by index. Raises NVMLError if the driver as a whole does not."""
    found = (_reading(index, gpm) for index in range(pynvml.nvmlDeviceGetCount()))
    return tuple(each for each in found if each is not None)


def _reading(index: int, gpm: Gpm) -> CardReading | None:
    handle = _ask(pynvml.nvmlDeviceGetHandleByIndex, index)
    uuid = _ask(pynvml.nvmlDeviceGetUUID, handle) if handle is not None else None
    if uuid is None:
        return None
    used, free, total, reserved = _memory_mib(handle)
    rates = _ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    return CardReading(
        uuid,
        memory_used_mib=used,
        memory_free_mib=free,
        memory_total_mib=total,
        sm_percent=_within(rates.gpu, _MOST_PERCENT) if rates is not None else None,
        memory_percent=_within(rates.memory, _MOST_PERCENT) if rates is not None else None,
        temperature_c=_within(
            _ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
            _MOST_CELSIUS,
        ),
        power_mw=_within(_ask(pynvml.nvmlDeviceGetPowerUsage, handle), _MOST_MILLIWATTS),
        power_limit_mw=_within(
            _ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle), _MOST_MILLIWATTS
        ),
        sm_clock_mhz=_within(
            _ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM), _MOST_MEGAHERTZ
        ),
        memory_reserved_mib=reserved,
        memory_clock_mhz=_within(
            _ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM), _MOST_MEGAHERTZ
        ),
        energy_mj=_within(
            _ask(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle), _MOST_MILLIJOULES
        ),
        encoder_percent=_codec(pynvml.nvmlDeviceGetEncoderUtilization, handle),
        decoder_percent=_codec(pynvml.nvmlDeviceGetDecoderUtilization, handle),
        tensor_percent=gpm.tensor_percent(uuid, handle),
    )


def _codec(call: Callable[..., Any], handle: Any) -> int | None:
    answer = _ask(call, handle)  # the percentage, and the period that it is about
    return None if answer is None else _within(answer[0], _MOST_PERCENT)


def _memory_mib(handle: Any) -> tuple[int | None, int | None, int | None, int | None]:
    """Used, free, total and reserved. Newer drivers tell what they reserve for themselves apart
    from what is used; older ones count it as used."""
    memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if memory is None:
        memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    # Cards that share the machine's memory have none of their own to tell of.
    if memory is None or not memory.total:
        return None, None, None, None
    reserved = getattr(memory, "reserved", None)
    return (
        memory.used // _MIB,
        memory.free // _MIB,
        memory.total // _MIB,
        None if reserved is None else reserved // _MIB,
    )


def _ask(call: Callable[..., Any], *args: Any) -> Any:
    """None: the card does not answer, or the driver does not know."""
    try:
        return call(*args)
    except pynvml.NVMLError as error:
        if error.value in OF_THE_DRIVER:
            raise
        return None


def _within(value: int | None, most: int) -> int | None:
    return value if value is not None and 0 <= value <= most else None
