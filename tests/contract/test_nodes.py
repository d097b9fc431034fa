"""Node object -> NodeInfo: labels and the inventory annotation."""

from typing import Any

import pytest

from gpupool.contract.inventory import inventory_text
from gpupool.contract.nodes import node_of
from gpupool.core.gpu import Card, CardPlacement, GpuMode, Inventory


def node(labels: dict[str, str] | None = None, **annotations: str) -> dict[str, Any]:
    named = {f"gpupool.io/{key}": value for key, value in annotations.items()}
    return {"metadata": {"name": "n", "labels": labels or {}, "annotations": named}}


@pytest.mark.parametrize(
    ("labels", "mode", "isolates"),
    [
        ({}, GpuMode.WHOLE, True),
        ({"cgpu": "true"}, GpuMode.SHARED, True),
        ({"cgpu": "false"}, GpuMode.WHOLE, True),
        ({"cgpu": "true", "cgpu.disable.isolation": "true"}, GpuMode.SHARED, False),
        ({"cgpu": "true", "cgpu.disable.isolation": "false"}, GpuMode.SHARED, True),
        ({"ack.node.gpu.schedule": "cgpu"}, GpuMode.SHARED, True),
        ({"ack.node.gpu.schedule": "share"}, GpuMode.SHARED, False),
        ({"ack.node.gpu.schedule": "default", "cgpu": "true"}, GpuMode.WHOLE, True),
    ],
)
def test_labels_say_how_cards_are_given_out(
    labels: dict[str, str], mode: GpuMode, isolates: bool
) -> None:
    found = node_of(node(labels))
    assert (found.gpu_mode, found.isolates) == (mode, isolates)


def test_placement_is_read_and_other_values_are_ignored() -> None:
    key = "ack.node.gpu.placement"
    assert node_of(node({key: "spread"})).card_placement is CardPlacement.SPREAD
    assert node_of(node({key: "sideways"})).card_placement is None


def test_the_inventory_is_read_and_a_bad_one_counts_as_missing() -> None:
    inventory = Inventory((Card(0, "GPU-a", "T4", 15079),))
    assert node_of(node(inventory=inventory_text(inventory))).inventory == inventory
    assert node_of(node(inventory="{")).inventory is None
    assert node_of(node()).inventory is None


def test_what_cannot_be_read_of_a_node_is_listed_and_counts_as_missing() -> None:
    bad = node(inventory="{")
    bad["status"] = {"allocatable": {"cpu": "1e400", "memory": "much", "pods": "-3"}}
    found = node_of(bad)
    assert found.inventory is None
    assert found.allocatable == {"cpu": 2**63 - 1, "pods": 0}
    assert [problem.partition(" cannot be read: ")[0] for problem in found.problems] == [
        "the annotation gpupool.io/inventory",
        "allocatable memory",
    ]
