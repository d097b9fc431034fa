"""Hints about names that are nearly ours: for pods and for workloads, and for nothing else."""

from typing import Any

import pytest

from gpupool.admission.cards import ClusterCards
from gpupool.admission.review import review_hints
from kubeclient.objects import Obj
from tests.admission.pods import review

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
