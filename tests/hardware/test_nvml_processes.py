"""What counts as used outside of pods, whatever the driver can tell of processes."""

from typing import NamedTuple

import pynvml
import pytest

from gpupool.hardware.nvml_processes import outside_mib

MIB = 1 << 20


class Process(NamedTuple):
    pid: int
    usedGpuMemory: int | None  # as NVML spells it


class Memory(NamedTuple):
    used: int


def outside(
    monkeypatch: pytest.MonkeyPatch,
    compute: list[Process] | int,
    graphics: list[Process] | int = pynvml.NVML_ERROR_NOT_SUPPORTED,
) -> int:
    """Of 1000 MiB in use. A number is the error that the driver returns for its list."""

    def answers(listed: list[Process] | int) -> object:
        def ask(_: object) -> list[Process]:
            if isinstance(listed, int):
                raise pynvml.NVMLError(listed)
            return listed

        return ask

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", lambda *_: Memory(1000 * MIB))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", answers(compute))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetGraphicsRunningProcesses", answers(graphics))
    return outside_mib(None, 0, lambda pid: pid < 100)


def test_computing_processes_are_never_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outside(monkeypatch, [Process(1, 300 * MIB), Process(999, 200 * MIB)]) == 500


def test_a_drawing_process_is_outside_unless_it_belongs_to_a_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawing = [Process(1, 300 * MIB), Process(999, 200 * MIB)]
    assert outside(monkeypatch, [], drawing) == 700


def test_a_process_that_computes_and_draws_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [Process(1, 300 * MIB)]
    assert outside(monkeypatch, both, both) == 700


@pytest.mark.parametrize(
    "compute", [pynvml.NVML_ERROR_TIMEOUT, pynvml.NVML_ERROR_NOT_SUPPORTED, [Process(1, None)]]
)
def test_nothing_is_outside_if_the_driver_does_not_tell(
    monkeypatch: pytest.MonkeyPatch, compute: list[Process] | int
) -> None:
    assert outside(monkeypatch, compute) == 0
