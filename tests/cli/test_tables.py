"""The table of `gpupool gpu pods`."""

from gpupool.cli.tables import pods_table
from gpupool.contract.names import ANNOTATION_ALLOCATION, ANNOTATION_MEM_IDX, RESOURCE_GPU_MEM
from kubeclient.objects import Obj


def pod(name: str, node: str = "n", phase: str = "Running", **annotations: str) -> Obj:
    container = {"name": "c", "resources": {"limits": {RESOURCE_GPU_MEM: "1"}}}
    return {
        "metadata": {"name": name, "namespace": "d", "uid": name, "annotations": annotations},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": phase},
    }


def test_a_pod_whose_cards_cannot_be_read_is_listed_with_the_reason() -> None:
    newer = pod("newer", **{ANNOTATION_ALLOCATION: '{"version": 2}'})
    lines = pods_table([newer, pod("foreign")], with_namespace=False).splitlines()
    assert lines[1].startswith("newer")
    assert lines[1].endswith("version 2; this program reads version 1")
    assert lines[2].startswith("foreign")
    assert lines[2].endswith("unknown: it has no annotation gpupool.io/allocation")


def test_a_card_that_another_scheduler_named_is_shown() -> None:
    [_, line] = pods_table(
        [pod("p", **{ANNOTATION_MEM_IDX: "3"})], with_namespace=True
    ).splitlines()
    assert line.split()[:4] == ["d/p", "Running", "n", "3"]


def test_pods_that_wait_or_have_ended_without_an_allocation_are_left_out() -> None:
    assert pods_table([pod("w", node=""), pod("e", phase="Succeeded")], with_namespace=True) == ""
