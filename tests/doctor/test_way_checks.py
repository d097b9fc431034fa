"""What the doctor says about the ways of nodes."""

import datetime
from dataclasses import replace

from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Card, Inventory
from gpupool.core.ways import Way, Ways
from gpupool.doctor.checks import judge
from gpupool.doctor.evidence import Evidence, Level
from kubeclient.objects import Obj

BY_CLASS = Ways(Way.RUNTIME_CLASS, known=(Way.RUNTIME_CLASS,), runtime_class="nvidia")


def node(name: str, ways: Ways) -> Obj:
    text = inventory_text(Inventory((Card(0, f"GPU-{name}", "T4", 15360),), ways=ways))
    annotations = {"gpupool.io/inventory": text}
    status = {"allocatable": {"nvidia.com/gpu": "1"}}
    return {"metadata": {"name": name, "annotations": annotations}, "status": status}


def said(*nodes: Obj) -> list[tuple[Level, str]]:
    evidence = Evidence(datetime.datetime.now(datetime.UTC), "v1.35.0", nodes)
    return [(each.level, each.what) for each in judge(evidence) if each.about == "ways"]


def test_nodes_with_the_same_way_share_a_line() -> None:
    assert said(node("a", BY_CLASS), node("b", BY_CLASS)) == [
        (
            Level.OK,
            "Cards of 2 nodes get into containers by NVIDIA's runtime, by a runtime class nvidia; "
            "a container whose card is missing is reported: a, b.",
        )
    ]


def test_a_node_says_what_becomes_of_containers_whose_card_is_missing() -> None:
    checked = replace(BY_CLASS, checks_starts=True)
    assert [words for _, words in said(node("a", checked), node("b", BY_CLASS))] == [
        "Cards of node a get into containers by NVIDIA's runtime, by a runtime class nvidia; "
        "a container whose card is missing does not start.",
        "Cards of node b get into containers by NVIDIA's runtime, by a runtime class nvidia; "
        "a container whose card is missing is reported.",
    ]
    ((_, words),) = said(node("a", Ways(Way.NRI, known=(Way.NRI,))))
    assert words.endswith("by the agent, as a plugin of the container runtime.")


def test_a_node_without_a_way_is_wrong_and_says_why() -> None:
    ((level, words),) = said(node("a", Ways(Way.NRI, "it does not answer")))
    assert level is Level.WRONG
    assert words.endswith("the container runtime: it does not answer.")


def test_nodes_that_need_a_class_beside_nodes_without_it_are_noted() -> None:
    found = said(node("a", BY_CLASS), node("b", Ways(Way.NRI, known=(Way.NRI,))))
    assert any(level is Level.NOTE and "need runtimeClassName nvidia" in w for level, w in found)
    both = Ways(Way.RUNTIME, known=(Way.RUNTIME, Way.RUNTIME_CLASS), runtime_class="nvidia")
    assert all(level is Level.OK for level, _ in said(node("a", BY_CLASS), node("b", both)))
