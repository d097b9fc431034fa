"""The tables of `gpupool gpu`."""

import pytest

from gpupool.cli.card_tables import CardRow, cards_table, shares_table
from gpupool.cli.output.layout import Layout
from gpupool.contract.allocation import allocation_text
from gpupool.contract.names import ANNOTATION_ALLOCATION, ANNOTATION_MEM_IDX, RESOURCE_GPU_MEM
from gpupool.core.gpu import (
    Allocation,
    Card,
    CardShare,
    ContainerGpus,
    Inventory,
    Isolation,
    Wall,
)
from gpupool.core.readings import CardReading
from kubeclient.objects import Obj


def pod(name: str, node: str = "n", phase: str = "Running", **annotations: str) -> Obj:
    container = {"name": "c", "resources": {"limits": {RESOURCE_GPU_MEM: "1"}}}
    return {
        "metadata": {"name": name, "namespace": "d", "uid": name, "annotations": annotations},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": phase},
    }


def pod_lines(*pods: Obj, with_namespace: bool = True) -> list[str]:
    return shares_table(pods, with_namespace=with_namespace).lines(Layout())


def test_a_pod_whose_cards_cannot_be_read_is_listed_with_the_reason() -> None:
    newer = pod("newer", **{ANNOTATION_ALLOCATION: '{"version": 2}'})
    lines = pod_lines(newer, pod("foreign"), with_namespace=False)
    assert lines[1].startswith("newer")
    assert lines[1].endswith("version 2; this program reads version 1")
    assert lines[2].startswith("foreign")
    assert lines[2].endswith("unknown: it has no annotation gpupool.io/allocation")


def test_a_card_that_another_scheduler_named_is_shown() -> None:
    table = shares_table([pod("p", **{ANNOTATION_MEM_IDX: "3"})], with_namespace=True)
    [_, line] = table.lines(Layout())
    assert line.split()[:4] == ["d/p", "Running", "n", "3"]
    [item] = table.document()["items"]
    assert (item["card"], item["possibleCards"], item["isolation"]) == (None, [3], "unknown")


def test_pods_that_wait_or_have_ended_without_an_allocation_are_left_out() -> None:
    assert not shares_table(
        [pod("w", node=""), pod("e", phase="Succeeded")], with_namespace=True
    ).rows


NODE = "cn-beijing.i-2ze8o1a45qdv5q8a7luz"


def card_line(
    width: int | None, *, free_mib: int = 9000, colours: bool = False, reason: str = ""
) -> str:
    uuid = "GPU-8f7c2bc2e-64b0-55e5-99ca-97058aa7f7fb"
    card = Card(0, uuid, "Tesla V100-SXM2-16GB", 16130, reason=reason, unit_mib=1024)
    used = 16130 - free_mib
    reading = CardReading(
        uuid,
        memory_used_mib=used,
        memory_free_mib=free_mib,
        sm_percent=97,
        temperature_c=61,
        power_mw=271_000,
    )
    table = cards_table([CardRow(NODE, card, reading)])
    return table.lines(Layout(width=width, colours=colours))[1]


@pytest.mark.parametrize("width", [80, 100, 120, 140, 160])
def test_the_node_of_a_card_is_whole_where_other_columns_can_go(width: int) -> None:
    line = card_line(width)
    assert line.startswith(f"{NODE} ")
    assert "healthy" in line
    assert len(line) <= width


def test_the_reason_of_a_broken_card_is_cut_before_the_name_of_its_node() -> None:
    line = card_line(80, reason="XID 79: the card has fallen off the bus")
    assert line.startswith(f"{NODE} ")
    assert "7130MiB" in line
    assert line.endswith("XID 79: the card has…")


@pytest.mark.parametrize(
    ("width", "last"), [(120, "healthy"), (132, "GPU-8f7c2bc2…"), (165, "97058aa7f7fb")]
)
def test_the_uuid_goes_before_anything_else_is_cut(width: int, last: str) -> None:
    line = card_line(width)
    assert line.endswith(last)
    assert "Tesla V100-SXM2-16GB" in line


def test_a_full_card_is_marked() -> None:
    """Full: not even one unit of its memory is free."""
    assert "\x1b[33m1000MiB\x1b[0m" in card_line(None, free_mib=1000, colours=True)
    assert "\x1b[33m15130MiB\x1b[0m" in card_line(None, free_mib=1000, colours=True)
    assert "\x1b[33m" not in card_line(None, free_mib=1024, colours=True)


def test_the_isolation_of_a_pod_is_one_word_that_is_never_missing() -> None:
    share = CardShare("GPU-a", 0, 3, 3226, 15)
    text = allocation_text(Allocation((ContainerGpus("c", (share,), Isolation.LIMIT),)))
    pods = [pod(name, **{ANNOTATION_ALLOCATION: text}) for name in ("a", "b")]
    known = {"n": Inventory(wall=Wall.DRIVER, other_walls=(("b", Wall.LIMITER),))}
    table = shares_table(pods, with_namespace=True, inventories=known)
    assert [item["isolation"] for item in table.document()["items"]] == ["driver", "limiter"]
    shown = [line.split()[-1] for line in table.lines(Layout())]
    assert shown == ["ISOLATION", "driver", "limiter"]
    blind = shares_table(pods, with_namespace=True)
    assert [item["isolation"] for item in blind.document()["items"]] == ["limiter", "limiter"]
