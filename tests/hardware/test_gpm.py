"""Tensor cores: cards from Hopper on tell how much of the time they computed."""

from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpupool.core.readings import CardReading
from gpupool.hardware.nvml_gpm import Gpm
from gpupool.hardware.simdriver import NodeFiles, create_node, inject
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import NotBuilt
from tests.hardware.test_readings import V100, NvmlReader, direct

H100 = card_profile("NVIDIA H100 80GB HBM3", 81559)


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    try:
        return create_node(tmp_path, "node-1", [H100, V100, H100])
    except NotBuilt as error:
        pytest.skip(str(error))


def _tensor(cards: tuple[CardReading, ...] | str) -> list[int | None]:
    assert not isinstance(cards, str), cards
    return [card.tensor_percent for card in cards]


def test_a_metric_is_about_the_time_between_two_samples(files: NodeFiles) -> None:
    with NvmlReader(files) as nvml:
        assert _tensor(nvml.readings()) == [None, None, None], "there is one sample only"
        assert _tensor(nvml.readings()) == [0, None, 0]
        inject(files, 2, parse_fault("utilisation=60"))
        assert _tensor(nvml.readings()) == [0, None, 30]
        assert nvml.readings() == direct(files)


@pytest.mark.parametrize(
    "call",
    [
        "nvmlGpmQueryDeviceSupport",
        "nvmlGpmSampleAlloc",
        "nvmlGpmSampleGet",
        "nvmlGpmMetricsGet",
        "nvmlGpmSampleFree",
    ],
)
@pytest.mark.parametrize("error", ["NO_PERMISSION", "NOT_SUPPORTED", "UNKNOWN"])
def test_a_driver_that_tells_no_metrics_tells_all_the_rest(
    files: NodeFiles, call: str, error: str
) -> None:
    inject(files, 0, parse_fault(f"fail={call}:{error}"))
    with NvmlReader(files) as nvml:
        for _ in range(3):
            read = nvml.readings()
            assert not isinstance(read, str)
            assert [card.sm_percent for card in read] == [0, 0, 0]


def test_a_card_that_was_lost_for_a_while_tells_again(files: NodeFiles) -> None:
    with NvmlReader(files) as nvml:
        nvml.readings()
        inject(files, 0, parse_fault("fail=nvmlGpmSampleGet:GPU_IS_LOST"))
        assert _tensor(nvml.readings()) == [None, None, 0]
        inject(files, 0, parse_fault("recover"))
        assert _tensor(nvml.readings()) == [0, None, 0]


@pytest.mark.parametrize(
    ("code", "value"),
    [(0, float("nan")), (0, -1.0), (0, 101.0), (pynvml.NVML_ERROR_NOT_SUPPORTED, 50.0)],
)
def test_nonsense_of_a_driver_is_unknown_and_no_sample_is_left(
    monkeypatch: pytest.MonkeyPatch, code: int, value: float
) -> None:
    samples: list[pynvml.c_nvmlGpmSample_t] = []

    def alloc() -> pynvml.c_nvmlGpmSample_t:
        samples.append(pynvml.c_nvmlGpmSample_t())
        return samples[-1]

    def answer(asked: Any) -> Any:
        asked.metrics[0].nvmlReturn, asked.metrics[0].value = code, value
        return asked

    class Support:
        isSupportedDevice = 1

    monkeypatch.setattr(pynvml, "nvmlGpmQueryDeviceSupport", lambda _: Support)
    monkeypatch.setattr(pynvml, "nvmlGpmSampleAlloc", alloc)
    monkeypatch.setattr(pynvml, "nvmlGpmSampleFree", samples.remove)
    monkeypatch.setattr(pynvml, "nvmlGpmSampleGet", lambda *_: None)
    monkeypatch.setattr(pynvml, "nvmlGpmMetricsGet", answer)
    gpm = Gpm()
    assert [gpm.tensor_percent("GPU-a", object()) for _ in range(3)] == [None] * 3
    assert len(samples) == 1, "the last one, for the next metric"
    gpm.end()
    assert not samples
