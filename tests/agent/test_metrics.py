"""The agent's metrics: DCGM's names for other dashboards, and ours for what they do not have."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpupool.agent import metrics_export
from gpupool.agent.metrics import Metrics
from gpupool.core.gpu import Card, Inventory, Wall
from gpupool.core.readings import CardReading, ContainerUse, NodeReadings
from gpupool.hardware.driver import Xid

SHARED = Card(0, "GPU-a", "Tesla V100", 16130)
WHOLE = Card(1, "GPU-b", "Tesla V100", 16130)
FREE = Card(2, "GPU-c", "Tesla V100", 16130)
P = ContainerUse("ns", "p", "main", 3000, "u", 3226, 3226, Wall.LIMITER, 3100, 20, 0.0, 40_000, 5.0)
Q = ContainerUse("ns", "q", "main", 0, "v", 3226, None, Wall.NONE, 0, 0, 7200.0, 0, 5.0)
W = ContainerUse("ns", "w", "main", 900, "w", 16130, None, None, 900, 50, 0.0, 90_000, 5.0)


def reading(uuid: str, *uses: ContainerUse) -> CardReading:
    return CardReading(
        uuid, 3400, 12730, 16130, 55, 30, 61, 200_500, 300_000, 1380, uses, 0, 877, 7, 1, 2
    )


READINGS = NodeReadings(
    "n", 9.0, (reading("GPU-a", P, Q), reading("GPU-b", W), CardReading("GPU-c", containers=()))
)
Found = dict[str, list[tuple[dict[str, str], float]]]


def told(readings: NodeReadings | None = READINGS) -> Found:
    metrics = Metrics("n", True, Inventory((SHARED, WHOLE, FREE), driver="550.1"))
    metrics.count_xids([Xid("GPU-b", 31), Xid("GPU-b", 79)])
    families = text_string_to_metric_families(metrics.text(readings))
    return {
        each.name: [(sample.labels, sample.value) for sample in each.samples] for each in families
    }


def by_pod(found: Found, name: str) -> dict[tuple[str, str], float]:
    return {(labels.get("gpu", ""), labels.get("pod", "")): value for labels, value in found[name]}


def test_a_card_has_one_dcgm_series_for_each_container() -> None:
    found = told()
    assert found["DCGM_FI_DEV_GPU_TEMP"][0][0] == {
        "gpu": "0",
        "UUID": "GPU-a",
        "device": "nvidia0",
        "modelName": "Tesla V100",
        "Hostname": "n",
        "DCGM_FI_DRIVER_VERSION": "550.1",
        "namespace": "ns",
        "pod": "p",
        "container": "main",
    }
    assert by_pod(found, "DCGM_FI_DEV_POWER_USAGE") == {
        ("0", "p"): 200.5,
        ("0", "q"): 200.5,
        ("1", "w"): 200.5,
    }
    assert by_pod(found, "DCGM_FI_DEV_XID_ERRORS") == {
        ("0", "p"): 0,
        ("0", "q"): 0,
        ("1", "w"): 79,
        ("2", ""): 0,
    }


def test_on_shared_cards_memory_and_utilisation_are_those_of_the_container() -> None:
    found = told()
    assert by_pod(found, "DCGM_FI_DEV_FB_USED") == {
        ("0", "p"): 3000,
        ("0", "q"): 0,
        ("1", "w"): 3400,
    }
    assert by_pod(found, "DCGM_FI_DEV_GPU_UTIL") == {("0", "p"): 20, ("0", "q"): 0, ("1", "w"): 55}
    assert by_pod(found, "DCGM_FI_PROF_GR_ENGINE_ACTIVE")["0", "p"] == 0.2


def test_tensor_cores_have_a_series_only_on_cards_that_tell_of_them() -> None:
    assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" not in {
        name for name, found in told().items() if found
    }
    hopper = replace(reading("GPU-b", W), tensor_percent=35)
    found = told(NodeReadings("n", 9.0, (reading("GPU-a", P), hopper)))
    assert by_pod(found, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE") == {("1", "w"): 0.35}


def test_what_a_container_was_given_and_does_is_told_in_base_units() -> None:
    found = told()
    mib = 1 << 20
    request = by_pod(found, "gpupool_container_memory_request_bytes")
    assert request == {("0", "p"): 3226 * mib, ("0", "q"): 3226 * mib, ("1", "w"): 16130 * mib}
    assert by_pod(found, "gpupool_container_memory_limit_bytes") == {("0", "p"): 3226 * mib}
    assert by_pod(found, "gpupool_container_memory_peak_bytes")["0", "p"] == 3100 * mib
    assert by_pod(found, "gpupool_container_idle_seconds")["0", "q"] == 7200
    assert by_pod(found, "gpupool_container_power_watts")["0", "p"] == 40
    walls = {
        labels["pod"]: labels["isolation"] for labels, _ in found["gpupool_container_isolation"]
    }
    assert walls == {"p": "limiter", "q": "none", "w": "whole"}
    assert by_pod(found, "gpupool_card_memory_reserved_bytes") == {
        ("0", ""): 2 * 3226 * mib,
        ("1", ""): 16130 * mib,
        ("2", ""): 0,
    }


def test_what_nobody_tells_has_no_series() -> None:
    found = told()
    assert ("2", "") not in by_pod(found, "DCGM_FI_DEV_FB_USED")
    without = told(None)
    assert without["DCGM_FI_DEV_FB_USED"] == []
    assert len(without["gpupool_card_memory_mib"]) == 3


def test_the_number_of_series_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_export, "MOST_SERIES", 2)
    found = told()
    assert len(found["DCGM_FI_DEV_XID_ERRORS"]) == 2
    assert found["gpupool_containers_left_out"] == [({"node": "n"}, 2.0)]


PAGE = (Path(__file__).parent.parent.parent / "docs" / "metrics.md").read_text(encoding="utf-8")


def documented() -> set[str]:
    """Names on the page; `_FB_TOTAL` beside `DCGM_FI_DEV_FB_FREE` is short for the whole name."""
    tables = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    names = {name for cell in tables for name in re.findall(r"`([A-Za-z_]+)`", cell)}
    return {f"DCGM_FI_DEV{name}" if name.startswith("_") else name for name in names}


def test_the_page_lists_every_metric_and_no_other() -> None:
    served = {name.removesuffix("_total") for name in told()}
    agents = {
        name.removesuffix("_total")
        for name in documented()
        if name.startswith(("DCGM_FI_", "gpupool_")) and "_scheduler_" not in name
    }
    assert served == agents


@pytest.mark.parametrize(("cards", "pods"), [(8, 0), (8, 20), (1, 110)])
def test_there_are_as_many_series_as_the_page_says(cards: int, pods: int) -> None:
    made = tuple(Card(n, f"GPU-{n}", "Tesla V100", 16130) for n in range(cards))
    uses: list[list[ContainerUse]] = [[] for _ in made]
    for n in range(pods):
        uses[n % cards].append(replace(P, pod=f"p{n}"))
    read = tuple(reading(card.uuid, *on) for card, on in zip(made, uses, strict=True))
    metrics = Metrics("n", True, Inventory(made, driver="550.1"))
    lines = metrics.text(NodeReadings("n", 9.0, read)).splitlines()
    count = sum(not line.startswith("#") for line in lines)
    most = 15 * max(cards, pods) + 9 * pods + 10 * cards
    assert most - 2 * cards <= count <= most + 10  # "and some of the node"
