"""`gpupool defrag`: what is asked, and what is proposed."""

from pathlib import Path

from gpupool.cli.defrag import _Asked, _proposal
from gpupool.contract.manifests import pod_templates
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from tests.cli.test_scenario import named_node, running
from tests.scheduler.test_what_if import pod

OWNER = {"kind": "ReplicaSet", "uid": "r", "controller": True}


def halves() -> list[Obj]:
    """On each of two nodes a pod with one card."""
    found = [running(f"on-{name}", 1, name) for name in ("a", "b")]
    for each in found:
        each["metadata"]["ownerReferences"] = [OWNER]
    return found


def test_there_is_room_for_each_of_several_objects_with_one_name() -> None:
    objects = {NODES: [named_node("a", 4), named_node("b", 4)], PODS: halves()}
    made = {"kind": "Pod", "metadata": {"generateName": "job-"}, "spec": pod("w", 3)["spec"]}
    templates = pod_templates([made, made], "t")
    asked = _Asked(Path("jobs.yaml"), "t", 10, False, "best-fit")
    plan = _proposal(objects, templates, [pod("w", 3), pod("w", 3)], asked).plan
    assert plan is not None
    assert {placement.node for placement in plan.placements} == {"a", "b"}
