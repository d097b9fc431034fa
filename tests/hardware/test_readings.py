"""Readings of cards: what is unknown stays unknown, and NVML and the state file agree."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from gpupool.core.readings import CardReading
from gpupool.hardware import nvml_readings
from gpupool.hardware.driver import NoDriver
from gpupool.hardware.nvml_gpm import Gpm
from gpupool.hardware.simdriver import NodeFiles, create_node, inject
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import NotBuilt, card_uuid
from gpupool.hardware.simulated import SimulatedDriver

UNTOLD = {"containers", "energy_mj", "tensor_percent"}  # by `still`, and by cards before Hopper
V100 = card_profile("Tesla V100-SXM2-16GB", 16130)

# Takes 300 MiB of card 1 and reads all cards, as often as there are lines.
READER = """
import asyncio, ctypes, sys
from gpupool.hardware.driver import NoDriver
from gpupool.hardware.nvml import NvmlDriver
cuda, context, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(300 << 20))

async def main():
    driver = NvmlDriver()
    await driver.look()
    for _ in sys.stdin:
        try:
            print(repr(await driver.readings()), flush=True)
        except NoDriver as error:
            print(repr(str(error)), flush=True)

asyncio.run(main())
"""


class NvmlReader:
    """Reads through NVML, in a process that finds the simulated libraries first."""

    def __init__(self, files: NodeFiles) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(files.libraries)},
        )

    def readings(self) -> tuple[CardReading, ...] | str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: tuple[CardReading, ...] | str = eval(
            self._process.stdout.readline(), {"CardReading": CardReading}
        )
        return found if isinstance(found, str) else still(found)

    def __enter__(self) -> "NvmlReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    try:
        return create_node(tmp_path, "node-1", [V100] * 3)
    except NotBuilt as error:
        pytest.skip(str(error))


def direct(files: NodeFiles) -> tuple[CardReading, ...]:
    return still(asyncio.run(SimulatedDriver(files.state).readings()))


def still(cards: tuple[CardReading, ...]) -> tuple[CardReading, ...]:
    """Without the energy, which grows from one reading to the next."""
    assert all((card.energy_mj or 0) > 0 for card in cards)
    return tuple(replace(card, energy_mj=None) for card in cards)


def test_an_idle_card_is_cool_and_draws_little(files: NodeFiles) -> None:
    (first, *_) = direct(files)
    assert first == CardReading(
        card_uuid("node-1", 0),
        memory_used_mib=0,
        memory_free_mib=16130,
        memory_total_mib=16130,
        sm_percent=0,
        memory_percent=0,
        temperature_c=34,
        power_mw=38_000,
        power_limit_mw=300_000,
        sm_clock_mhz=135,
        memory_reserved_mib=0,
        memory_clock_mhz=877,
        encoder_percent=0,
        decoder_percent=0,
    )


def test_nvml_and_the_state_file_give_the_same_readings(files: NodeFiles) -> None:
    with NvmlReader(files) as nvml:
        assert nvml.readings() == direct(files)
        for fault in ("memory=700", "utilisation=60", "temperature=91", "recover", "lost"):
            inject(files, 2, parse_fault(fault))
            seen = direct(files)
            assert nvml.readings() == seen, fault
        assert [card.uuid for card in seen] == [card_uuid("node-1", index) for index in (0, 1)]
        assert (seen[1].memory_used_mib, seen[1].memory_free_mib) == (300, 15830)
    assert direct(files)[1].memory_used_mib == 0


def test_a_busy_card_is_hotter_and_draws_more(files: NodeFiles) -> None:
    inject(files, 0, parse_fault("utilisation=100"))
    busy, idle, _ = direct(files)
    assert busy.sm_percent == 100
    assert busy.temperature_c == 68
    assert busy.power_mw == 270_000
    assert (busy.sm_clock_mhz or 0) > (idle.sm_clock_mhz or 0)


@pytest.mark.parametrize(
    ("call", "unknown"),
    [
        ("nvmlDeviceGetUtilizationRates", {"sm_percent", "memory_percent"}),
        ("nvmlDeviceGetTemperature", {"temperature_c"}),
        ("nvmlDeviceGetPowerUsage", {"power_mw"}),
        ("nvmlDeviceGetEnforcedPowerLimit", {"power_limit_mw"}),
        ("nvmlDeviceGetClockInfo", {"sm_clock_mhz", "memory_clock_mhz"}),
        ("nvmlDeviceGetEncoderUtilization", {"encoder_percent"}),
        (
            "nvmlDeviceGetMemoryInfo*",
            {"memory_used_mib", "memory_free_mib", "memory_total_mib", "memory_reserved_mib"},
        ),
    ],
)
@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "GPU_IS_LOST"])
def test_what_the_driver_does_not_tell_is_unknown_and_the_rest_is_told(
    files: NodeFiles, call: str, unknown: set[str], error: str
) -> None:
    with NvmlReader(files) as nvml:
        assert nvml.readings() == direct(files)
        inject(files, 0, parse_fault(f"fail={call}:{error}"))
        read = nvml.readings()
        assert not isinstance(read, str)
    first, second, _ = read
    fields = CardReading.__slots__
    assert {each for each in fields if getattr(first, each) is None} == unknown | UNTOLD
    assert {each for each in fields if getattr(second, each) is None} == UNTOLD


def test_older_drivers_count_what_they_reserve_as_used(files: NodeFiles) -> None:
    inject(files, 0, parse_fault("fail=nvmlDeviceGetMemoryInfo_v2:NOT_SUPPORTED"))
    with NvmlReader(files) as nvml:
        read = nvml.readings()
        first, *others = direct(files)
        # It does not tell how much that is.
        assert read == (replace(first, memory_reserved_mib=None), *others)


def test_a_driver_that_does_not_answer_is_no_reading(files: NodeFiles) -> None:
    with NvmlReader(files) as nvml:
        nvml.readings()
        inject(files, None, parse_fault("fail=nvmlDeviceGetCount_v2:UNKNOWN"))
        assert "does not answer" in str(nvml.readings())


def test_without_a_state_file_there_is_no_driver(tmp_path: Path) -> None:
    with pytest.raises(NoDriver, match="No such file"):
        asyncio.run(SimulatedDriver(tmp_path / "state").readings())


def test_nonsense_of_a_driver_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rates:
        gpu, memory = 2**32 - 1, 101

    class Memory:
        used = free = total = 0

    def all_bits(*_: object) -> int:
        return 2**32 - 1

    answers = {
        "Count": lambda: 1,
        "HandleByIndex": lambda _: object(),
        "UUID": lambda _: "GPU-a",
        "MemoryInfo": lambda *_: Memory,
        "UtilizationRates": lambda _: Rates,
        "Temperature": all_bits,
        "PowerUsage": all_bits,
        "EnforcedPowerLimit": all_bits,
        "ClockInfo": all_bits,
        "TotalEnergyConsumption": lambda _: 2**64 - 1,
        "EncoderUtilization": lambda _: (2**32 - 1, 0),
        "DecoderUtilization": lambda _: (2**32 - 1, 0),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, f"nvmlDeviceGet{name}", answer)
    monkeypatch.setattr(Gpm, "tensor_percent", lambda *_: None)  # test_gpm.py
    assert nvml_readings.readings(Gpm()) == (CardReading("GPU-a"),)
