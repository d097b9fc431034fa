"""`gpupool defrag`: what is asked, and what is proposed."""

from pathlib import Path
from typing import Any

import pytest

from gpupool.cli.defrag import _Asked, _proposal
from gpupool.cli.defrag_view import page_of
from gpupool.contract.manifests import pod_templates
from kubeclient.objects import Obj
from kubeclient.resources import DISRUPTION_BUDGETS, NODES, PODS
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


def budget(name: str, allowed: int) -> Obj:
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": allowed},
    }


def refused(pods: list[Obj], *budgets: Obj) -> str:
    """The answer about a pod that needs all cards of a node."""
    objects = {
        NODES: [named_node("a", 4), named_node("b", 4)],
        PODS: pods,
        DISRUPTION_BUDGETS: list(budgets),
    }
    template = {"kind": "Pod", "metadata": {"name": "w"}, "spec": pod("w", 4)["spec"]}
    asked = _Asked(Path("w.yaml"), "team", 10, False, "best-fit")
    proposal = _proposal(objects, pod_templates([template], "team"), [pod("w", 4)], asked)
    assert proposal.plan is None
    return page_of(proposal).text[0].text


@pytest.mark.parametrize(
    ("metadata", "spec", "words"),
    [
        (
            {"labels": {"gpupool.io/may-move": "false"}},
            {},
            "In the way: pod team/on-a of node a has the label gpupool.io/may-move=false.",
        ),
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
            {},
            "has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false.",
        ),
        ({}, {"priority": 7}, "pod team/on-a of node a has the priority 7, which is above 0."),
    ],
)
def test_what_keeps_the_pods_that_would_have_to_move_is_named(
    metadata: dict[str, Any], spec: dict[str, Any], words: str
) -> None:
    pods = halves()
    for each in pods:
        for key, value in metadata.items():
            each["metadata"][key] = {**each["metadata"].get(key, {}), **value}
        each["spec"] |= spec
    assert words in refused(pods)


def test_disruption_budgets_that_are_in_the_way_are_named() -> None:
    said = refused(halves(), budget("careful", 0))
    assert "In the way: the disruption budget team/careful allows no eviction now." in said
    said = refused(halves(), budget("one", 5), budget("two", 5))
    assert "pod team/on-a has the disruption budgets team/one and team/two." in said


def test_nothing_is_said_to_be_in_the_way_where_no_moves_would_help() -> None:
    pods = halves()
    for each in pods:
        del each["metadata"]["ownerReferences"]
    said = refused(pods, budget("careful", 0))
    assert "In the way" not in said
    assert "See why it fits nowhere" in said
