"""Performance metrics of NVML (GPM), which cards have from Hopper on.

A metric is about the time between two samples of a card, so the last sample of each card is kept.
They belong to one session of NVML. Elsewhere DCGM reads counters for this, with a daemon and rights
that the agent does not have.
"""

import contextlib
from typing import Any

import pynvml

from gpupool.hardware.nvml_processes import OF_THE_DRIVER

_MOST_PERCENT = 100
# It will not be otherwise while this driver runs: drivers before 525 do not have the functions.
_FOR_GOOD = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
)


class Gpm:
    def __init__(self) -> None:
        self._samples: dict[str, Any] = {}  # the last, by uuid of the card
        self._without: set[str] = set()  # cards that have no metrics

    def tensor_percent(self, uuid: str, handle: Any) -> int | None:
        """In which part of the time since the last call tensor cores computed; None: not known, or
        this is the first call. NVML wants at least 100 ms between two samples. Raises NVMLError if
        the driver as a whole does not answer."""
        if uuid in self._without:
            return None
        try:
            return self._next(uuid, handle)
        except pynvml.NVMLError as error:
            if error.value in OF_THE_DRIVER:
                raise
            if error.value in _FOR_GOOD:
                self._without.add(uuid)
            return None

    def end(self) -> None:
        """Before the session of NVML ends."""
        while self._samples:
            _free(self._samples.popitem()[1])

    def _next(self, uuid: str, handle: Any) -> int | None:
        before = self._samples.get(uuid)
        if before is None and not pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
            self._without.add(uuid)
            return None
        sample = pynvml.nvmlGpmSampleAlloc()
        try:
            pynvml.nvmlGpmSampleGet(handle, sample)
        except pynvml.NVMLError:
            _free(sample)
            raise
        self._samples[uuid] = sample
        if before is None:
            return None
        try:
            return _tensor_percent(before, sample)
        finally:
            _free(before)


def _tensor_percent(before: Any, after: Any) -> int | None:
    asked = pynvml.c_nvmlGpmMetricsGet_t()
    asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    asked.sample1, asked.sample2 = before, after
    asked.numMetrics = 1
    asked.metrics[0].metricId = pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL
    found = pynvml.nvmlGpmMetricsGet(asked).metrics[0]
    is_told = found.nvmlReturn == pynvml.NVML_SUCCESS and 0 <= found.value <= _MOST_PERCENT
    return round(found.value) if is_told else None


def _free(sample: Any) -> None:
    with contextlib.suppress(pynvml.NVMLError):  # it ends with the session
        pynvml.nvmlGpmSampleFree(sample)
