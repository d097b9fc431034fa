"""Reports of agents on lowered limits: kept by node, as long as the node has some."""

from gpupool.contract.names import ANNOTATION_SHRINKS
from gpupool.contract.resize import ShrinkReport, reports_text
from gpupool.scheduler.resizing import Resizing
from kubeclient.objects import Obj


def reporting(name: str) -> Obj:
    text = reports_text({"u": ShrinkReport("1", {})})
    return {"metadata": {"name": name, "annotations": {ANNOTATION_SHRINKS: text}}}


def test_nothing_is_kept_of_nodes_that_are_gone_or_have_nothing_to_report() -> None:
    resizing = Resizing(lambda: None)
    for number in range(3):
        node = reporting(f"n{number}")
        resizing.node_seen(None, node)
        if number:
            resizing.node_seen(node, None)
        else:
            resizing.node_seen(node, {"metadata": {"name": "n0"}})
    assert not resizing._reports
