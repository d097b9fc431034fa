"""The tables of `gpupool gpu`."""

from gpupool.cli.card_tables import shares_table
from gpupool.cli.output.layout import Layout
from gpupool.contract.names import ANNOTATION_ALLOCATION, ANNOTATION_MEM_IDX, RESOURCE_GPU_MEM
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
