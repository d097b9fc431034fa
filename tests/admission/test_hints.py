"""Hints about names that are nearly ours: for pods and for workloads, and for nothing else."""

from typing import Any

import pytest

from gpupool.admission.cards import ClusterCards, cluster_cards
from gpupool.admission.foreign.systems import ALL, System
from gpupool.admission.review import review_hints, review_pod
from gpupool.core.gpu import Card, GpuMode, Inventory
from gpupool.core.nodes import NodeInfo
from kubeclient.objects import Obj
from tests.admission.pods import RULES, review

COUNT = "aliyun.com/gpu-count"


def pod(limits: Obj, labels: Obj | None = None) -> Obj:
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
    }
    return {"kind": "Pod", **template}


def hinted(obj: Obj, *offered: str) -> list[str]:
    cards = ClusterCards(resources=frozenset(offered))
    response = review_hints(review(obj), cards)["response"]
    assert response["allowed"] is True
    assert "patch" not in response
    found: list[str] = response.get("warnings", [])
    return found


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("aliyun.com/gpumem", "aliyun.com/gpu-mem"),
        ("aliyun.com/gpu_mem", "aliyun.com/gpu-mem"),
        ("aliyun.com/gpu-memory", "aliyun.com/gpu-mem"),
        ("aliyum.com/gpu-mem", "aliyun.com/gpu-mem"),
        ("nvidia.com/gpumem", "aliyun.com/gpu-mem"),
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvida.com/gpu", "nvidia.com/gpu"),
        ("nvidia.com/GPU", "nvidia.com/gpu"),
        ("aliyun.com/gpu", "nvidia.com/gpu"),
        ("aliyun.com/gpu-core", "aliyun.com/gpu-core.percentage"),
    ],
)
def test_a_name_that_is_nearly_ours_is_asked_about(written: str, meant: str) -> None:
    assert hinted(pod({written: "1"})) == [
        f"spec.containers[0].resources: no node has {written}, so the pod would wait; did you mean "
        f"{meant}?"
    ]


@pytest.mark.parametrize(
    "name",
    ["amd.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared", "example.com/gpu-mem", "cpu"],
)
def test_names_of_others_are_left_alone(name: str) -> None:
    assert hinted(pod({name: "1"})) == []


def test_a_resource_that_a_node_offers_is_left_alone() -> None:
    assert hinted(pod({"nvidia.com/gpus": "1"}), "nvidia.com/gpus") == []


def test_a_count_of_cards_is_a_label_and_belongs_to_a_share() -> None:
    (resource,) = hinted(pod({COUNT: "2"}))
    assert "write it as a label" in resource
    (label,) = hinted(pod({"nvidia.com/gpu": "2"}, {COUNT: "2"}))
    assert "has no effect without aliyun.com/gpu-mem" in label
    assert hinted(pod({"aliyun.com/gpu-mem": "2"}, {COUNT: "2"})) == []


def test_the_templates_of_workloads_are_looked_at() -> None:
    template: dict[str, Any] = pod({"nvidia.com/gpus": "1"})
    job = {"spec": {"template": template}}
    for kind, spec in (
        ("Deployment", {"template": template}),
        ("CronJob", {"jobTemplate": job}),
    ):
        assert len(hinted({"kind": kind, "metadata": {"name": "x"}, "spec": spec})) == 1


CARDS = cluster_cards(
    [
        NodeInfo(
            "n",
            gpu_mode=GpuMode.SHARED,
            inventory=Inventory((Card(0, "GPU-0", "Tesla V100-SXM2-16GB", 16130),)),
        )
    ]
)


def warned(obj: Obj, running: frozenset[System] = frozenset()) -> list[str]:
    response = review_hints(review(obj), CARDS, ALL - running, running)["response"]
    found: list[str] = response.get("warnings", [])
    return found


def test_a_workload_is_told_once_how_its_words_are_understood() -> None:
    made = deployment(pod({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}))
    assert warned(made) == [
        "words of another system were understood: c: nvidia.com/gpu=1, nvidia.com/gpumem=3000 -> "
        "aliyun.com/gpu-mem=3 (3226 MiB or more)"
    ]
    assert warned(made, frozenset({System.HAMI})) == []


def test_a_workload_is_told_what_its_pods_will_be_refused_for() -> None:
    (said,) = warned(deployment(pod({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "99999"})))
    assert said.startswith("its pods will be refused: spec.containers[0].resources.limits[nvidia")


@pytest.mark.parametrize(
    ("limits", "labels", "wrong"),
    [
        ({"aliyun.com/gpu-mem": "3Gi"}, {}, "found 3Gi; write the number without a unit"),
        ({"aliyun.com/gpu-mem": "99"}, {}, "at most 15 as the largest shared card has, found 99"),
        ({"aliyun.com/gpu-mem": "3"}, {COUNT: "2"}, "wanted a multiple of the 2 cards"),
        ({"nvidia.com/gpu": "1", "aliyun.com/gpu-mem": "3"}, {}, "found both"),
        ({"alpha.kubernetes.io/nvidia-gpu": "-1"}, {}, "wanted 0 or more, found -1"),
    ],
)
def test_a_workload_in_our_words_is_told_what_its_pods_will_be_refused_for(
    limits: Obj, labels: Obj, wrong: str
) -> None:
    (said,) = warned(deployment(pod(limits, labels)))
    assert said.startswith("its pods will be refused: spec.containers[0].resources.limits")
    assert wrong in said


def test_a_workload_whose_pods_are_admitted_is_told_nothing() -> None:
    assert warned(deployment(pod({"aliyun.com/gpu-mem": "3"}))) == []
    assert warned(deployment(pod({"nvidia.com/gpu": "1"}))) == []
    assert warned(deployment(pod({"cpu": "1"}))) == []


def test_a_pod_is_told_unless_a_workload_owns_it() -> None:
    made = pod({"nvidia.com/gpumem": "3000"})
    made["metadata"]["name"] = "p"
    (said,) = review_pod(review(made), RULES, CARDS, ALL)["response"]["warnings"]
    assert said.startswith("words of another system were understood: c: nvidia.com/gpumem=3000")
    made["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet"}]
    assert "warnings" not in review_pod(review(made), RULES, CARDS, ALL)["response"]


def test_visible_devices_without_a_request_are_asked_about() -> None:
    made = pod({})
    made["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    (said,) = warned(made)
    assert said.startswith("NVIDIA_VISIBLE_DEVICES without a request for GPUs")
    made["spec"]["containers"][0]["env"][0]["value"] = "void"
    assert warned(made) == []


def deployment(made: Obj) -> Obj:
    return {"kind": "Deployment", "metadata": {}, "spec": {"template": made}}
