"""What `gpupool migrate` says of pods that were made for other systems."""

import json
from typing import Any

import pytest

from gpupool.admission.foreign.systems import System
from gpupool.cli.migrate_view import page_of
from gpupool.cli.migration import Move, Plan, group_of_template, groups_of_pods, plan_of
from gpupool.cli.output.layout import Layout
from gpupool.contract.inventory import inventory_text
from gpupool.contract.manifests import pod_templates
from gpupool.core.gpu import Card, Inventory
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.follow import empty_state
from kubeclient.objects import Obj

HAMI = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"}


def node(name: str, cards: int = 1) -> Obj:
    listed = tuple(Card(at, f"{name}-{at}", "Tesla V100", 16130) for at in range(cards))
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    offered = {"aliyun.com/gpu-mem": str(15 * cards), "aliyun.com/gpu-core.percentage": "100"}
    return {
        "metadata": {
            "name": name,
            "labels": {"cgpu": "true"},
            "annotations": {"gpupool.io/inventory": inventory_text(Inventory(listed))},
        },
        "status": {"allocatable": {**room, **offered}},
    }


def pod(name: str, limits: Obj, node_name: str = "", owner: str = "", **more: Any) -> Obj:
    resources = {"limits": dict(limits), "requests": dict(limits)}
    metadata: Obj = {"name": name, "namespace": "a", "uid": name, **more}
    if owner:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
        metadata["labels"] = {"pod-template-hash": owner.rpartition("-")[2]}
    return {
        "metadata": metadata,
        "spec": {
            "containers": [{"name": "c", "resources": resources}],
            "nodeName": node_name,
            "schedulerName": "hami-scheduler",
        },
        "status": {"phase": "Running" if node_name else "Pending"},
    }


def cluster(nodes: list[Obj], pods: list[Obj]) -> ClusterState:
    state = empty_state()
    for each in nodes:
        state.node_changed(None, each)
    for each in pods:
        state.pod_changed(None, each)
    return state


def plan(nodes: list[Obj], *pods: Obj, running: tuple[System, ...] = ()) -> Plan:
    return plan_of(cluster(nodes, list(pods)), running, groups_of_pods(pods))


def test_pods_of_one_workload_are_one_line_and_are_placed_without_their_old_selves() -> None:
    pods = [pod(f"web-abc-{at}", HAMI, "n", owner="web-abc") for at in range(2)]
    (move,) = plan([node("n", 2)], *pods, running=(System.HAMI,)).moves
    assert (move.kind, move.namespace, move.name, move.verdict) == (
        "Deployment",
        "a",
        "web",
        "translated",
    )
    assert move.nodes == ("n", "n")
    assert move.notes[0] == (
        "c: nvidia.com/gpu=1, nvidia.com/gpumem=8000 -> aliyun.com/gpu-mem=8 (8602 MiB or more)"
    )


def test_what_does_not_fit_is_said_with_the_engines_reason() -> None:
    pods = [pod(f"web-abc-{at}", HAMI, "n", owner="web-abc") for at in range(3)]
    found = plan([node("n", 2)], *pods)
    (move,) = found.moves
    assert (move.pods, move.waiting) == (3, 1)
    assert "Insufficient GPU Memory in one device" in move.why
    assert not found.is_good
    assert "Add cards, or ask for less" in found.steps[0]


def test_a_refused_workload_says_why() -> None:
    found = plan([node("n")], pod("p", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "99999"}))
    assert found.moves[0].verdict == "refused"
    assert "wanted no more than a card has" in found.moves[0].notes[0]
    assert found.steps == ("Change what would be refused: Pod a/p.",)
    assert not found.is_good


def test_the_steps_name_the_system_that_has_to_go() -> None:
    found = plan([node("n")], pod("p", HAMI, "n"), running=(System.HAMI,))
    assert found.is_good
    assert "take HAMi off it" in found.steps[0]
    assert found.steps[1] == "Create these again, in this order: Pod a/p."


def test_the_largest_come_first() -> None:
    small = pod("small", {"nvidia.com/gpumem": "1000"})
    large = pod("large", {"nvidia.com/gpumem": "15000"})
    found = plan([node("n"), node("m")], small, large)
    assert [move.name for move in found.moves] == ["large", "small"]


def test_without_shared_cards_agents_come_first() -> None:
    plain = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "110"}}}
    found = plan([plain], pod("p", HAMI))
    assert found.steps[0].startswith("Install gpupool's agents")


def test_other_pods_are_left_out_and_ours_stay() -> None:
    ended = pod("ended", HAMI)
    ended["status"]["phase"] = "Succeeded"
    found = plan(
        [node("n")], pod("web", {"cpu": "1"}), ended, pod("ours", {"aliyun.com/gpu-mem": "3"})
    )
    assert [(move.name, move.verdict) for move in found.moves] == [("ours", "translated")]
    mine = pod("ours", {"aliyun.com/gpu-mem": "3"}, "n")
    mine["spec"]["schedulerName"] = "gpupool-scheduler"
    found = plan([node("n")], mine)
    assert [(move.name, move.verdict) for move in found.moves] == [("ours", "unchanged")]


def test_a_manifest_is_tried_once_for_each_replica() -> None:
    template = {"metadata": {}, "spec": pod("p", HAMI)["spec"]}
    spec = {"replicas": 3, "template": template}
    obj = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    (given,) = pod_templates([obj], "a")
    made = {**given.pod, "metadata": {**given.pod["metadata"], "uid": "x"}}
    state = cluster([node("n", 2)], [])
    (move,) = plan_of(state, (), [group_of_template(given, made)]).moves
    assert (move.pods, len(move.nodes)) == (3, 2)


def test_what_the_api_server_refuses_is_passed_on() -> None:
    (given,) = pod_templates(
        [{"kind": "Pod", "metadata": {"name": "p"}, "spec": pod("p", {})["spec"]}], "a"
    )
    found = plan_of(cluster([], []), (), [group_of_template(given, None, "no such image")])
    assert found.moves[0].notes == ("no such image",)


@pytest.mark.parametrize(
    ("move", "line"),
    [
        (Move("Pod", "a", "p", "refused", ("why",), 1), "Pod a/p: would be refused"),
        (Move("Pod", "a", "p", "translated", ("x",), 1, ("n",)), "Pod a/p: 1 pod would fit, on n"),
        (
            Move("Job", "a", "j", "translated", (), 2, ("n",)),
            "Job a/j: 1 of 2 pods would fit, on n",
        ),
        (Move("Job", "a", "j", "translated", (), 2), "Job a/j: 2 pods, would wait"),
        (Move("Job", "a", "j", "unchanged", (), 0), "Job a/j: no pods"),
    ],
)
def test_people_read_one_line_about_each(move: Move, line: str) -> None:
    page = page_of(Plan((move,), ()))
    assert page.lines(Layout())[0] == line
    assert json.dumps(page.document())


def test_nothing_to_move_is_said() -> None:
    assert page_of(Plan((), ())).lines(Layout()) == ["No workload here asks for GPUs."]
