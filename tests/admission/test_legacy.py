import json

import pytest

from gpupool.admission.cards import ClusterCards
from kubeclient.objects import Obj
from tests.admission.pods import admitted, container, pod, refusal

ANNOTATION = "scheduler.alpha.kubernetes.io/affinity"


def affinity(*names: str) -> Obj:
    expression = {
        "key": "alpha.kubernetes.io/nvidia-gpu-name",
        "operator": "In",
        "values": list(names),
    }
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_the_old_resource_becomes_the_new_one() -> None:
    made = admitted(pod(container("a", alpha=2), container("b", alpha=3)))
    assert [c["resources"] for c in made["spec"]["containers"]] == [
        {"limits": {"nvidia.com/gpu": n}, "requests": {"nvidia.com/gpu": n}} for n in ("2", "3")
    ]


def test_both_names_at_once_are_refused() -> None:
    assert "found both" in refusal(pod(container(alpha=1, gpu=1)))


def test_the_affinity_annotation_becomes_affinity_with_names_that_nodes_carry() -> None:
    asked = pod(container(alpha=2))
    asked["metadata"]["annotations"] = {ANNOTATION: json.dumps(affinity("Tesla K80", "Tesla P100"))}
    made = admitted(asked)
    assert made["spec"]["affinity"] == affinity("Tesla-K80", "Tesla-P100")
    assert ANNOTATION not in made["metadata"]["annotations"]


def test_a_short_name_stands_for_the_full_names_that_nodes_carry() -> None:
    cards = ClusterCards(labels=frozenset({"Tesla-P100-PCIE-16GB", "Tesla-P1000", "Tesla-K80"}))
    made = admitted(pod(container(gpu=1), affinity=affinity("Tesla K80", "Tesla P100")), cards)
    expected = affinity("Tesla-K80", "Tesla-P100", "Tesla-P100-PCIE-16GB")
    assert made["spec"]["affinity"] == expected


def test_short_names_in_spec_affinity_are_completed_too() -> None:
    made = admitted(pod(container(gpu=1), affinity=affinity("Tesla K80")))
    assert made["spec"]["affinity"] == affinity("Tesla-K80")


def test_annotation_and_affinity_together_are_refused() -> None:
    asked = pod(container(alpha=2), affinity=affinity("x"))
    asked["metadata"]["annotations"] = {ANNOTATION: json.dumps(affinity("y"))}
    assert "found both" in refusal(asked)


@pytest.mark.parametrize("text", ["", "[]", "{", "1", '{"nodeAffinity": 1}'])
def test_an_annotation_that_is_no_affinity_is_refused(text: str) -> None:
    asked = pod(container(alpha=2))
    asked["metadata"]["annotations"] = {ANNOTATION: text}
    assert "wanted an affinity as JSON" in refusal(asked)


@pytest.mark.parametrize("strange", [{"nodeAffinity": {"required": 1}}, {"nodeAffinity": []}, {}])
def test_an_affinity_of_another_shape_is_left_to_validation(strange: Obj) -> None:
    assert admitted(pod(container(gpu=1), affinity=strange))["spec"]["affinity"] == strange
