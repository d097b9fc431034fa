"""Requests in the words of other systems, and what they become."""

import copy
from typing import Any

import pytest

from gpupool.admission.cards import ClusterCards, cluster_cards
from gpupool.admission.foreign.systems import ALL, System, of_api_groups, of_node, understood
from gpupool.admission.foreign.translate import translate
from gpupool.admission.review import review_pod
from gpupool.core.gpu import Card, GpuMode, Inventory
from gpupool.core.nodes import NodeInfo
from kubeclient.objects import Obj
from tests.admission.pods import RULES, applied, environment, review

V100, T4, A100 = ("Tesla V100-SXM2-16GB", 16130), ("Tesla T4", 15360), ("A100-SXM4-80GB", 81920)
MEM, PERCENT, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu-count"


def cards_of(*kinds: tuple[str, int]) -> ClusterCards:
    return cluster_cards(
        NodeInfo(
            f"n{at}",
            {"kind": model},
            gpu_mode=GpuMode.SHARED,
            inventory=Inventory((Card(0, f"GPU-{at}", model, mib),)),
        )
        for at, (model, mib) in enumerate(kinds)
    )


V100S, MIXED = cards_of(V100), cards_of(V100, A100)


def asking(limits: Obj | None = None, annotations: Obj | None = None, **spec: Any) -> Obj:
    """As the API server sends it: limits are copied into requests."""
    resources = {"limits": dict(limits or {}), "requests": dict(limits or {})} if limits else {}
    labels = spec.pop("labels", {})
    return {
        "metadata": {"name": "p", "labels": labels, "annotations": dict(annotations or {})},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "resources": resources}],
            **spec,
        },
    }


def kai(annotations: Obj, **more: Any) -> Obj:
    return asking(
        annotations=annotations,
        labels={"kai.scheduler/queue": "default-queue"},
        schedulerName="kai-scheduler",
        **more,
    )


def translated(pod: Obj, cards: ClusterCards = V100S) -> Obj:
    done = translate(pod, cards, ALL)
    assert not done.wrong
    return pod


def limits(pod: Obj, at: int = 0) -> Obj:
    resources = pod["spec"]["containers"][at]["resources"]
    assert resources["limits"] == resources["requests"]
    found: Obj = resources["limits"]
    return found


GPU, GPUMEM = "nvidia.com/gpu", "nvidia.com/gpumem"
HAMI = {
    "memory alone is of one card": ({GPUMEM: "3000"}, {MEM: "3"}),
    "memory beside one card": ({GPU: "1", GPUMEM: "3000"}, {MEM: "3"}),
    "a unit that is begun is given": ({GPU: "1", GPUMEM: "3073"}, {MEM: "4"}),
    "all memory of a card is not more units than it has": (
        {GPU: "1", GPUMEM: "16130"},
        {MEM: "15"},
    ),
    "compute": ({GPU: "1", GPUMEM: "2048", "nvidia.com/gpucores": "30"}, {MEM: "2", PERCENT: "30"}),
    "no compute": ({GPU: "1", GPUMEM: "2048", "nvidia.com/gpucores": "0"}, {MEM: "2"}),
    "a part": ({GPU: "1", "nvidia.com/gpumem-percentage": "50"}, {MEM: "8"}),
    "compute without memory": ({GPU: "1", "nvidia.com/gpucores": "30"}, {MEM: "15", PERCENT: "30"}),
    "a card alone": (
        {GPU: "1", GPUMEM: "1024", "nvidia.com/gpucores": "100"},
        {MEM: "15", PERCENT: "100"},
    ),
    "memory of 0 is none": ({GPU: "2", GPUMEM: "0"}, {GPU: "2", GPUMEM: "0"}),
    "other resources stay": ({GPUMEM: "1024", "cpu": "1"}, {MEM: "1", "cpu": "1"}),
    "whole cards are asked for in one way by all": ({GPU: "2"}, {GPU: "2"}),
    "volcano": ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024"}, {MEM: "1"}),
    "volcano with compute": (
        {"volcano.sh/vgpu-memory": "1025", "volcano.sh/vgpu-cores": "20"},
        {MEM: "2", PERCENT: "20"},
    ),
    "volcano by percentage": (
        {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory-percentage": "100"},
        {MEM: "15"},
    ),
    "volcano without memory": ({"volcano.sh/vgpu-number": "2"}, {GPU: "2"}),
    "cards by their links": ({"aliyun.com/gpu": "4"}, {GPU: "4"}),
}


@pytest.mark.parametrize("case", HAMI)
def test_resources_become_ours(case: str) -> None:
    asked, wanted = HAMI[case]
    pod = translated(asking(asked))
    assert limits(pod) == wanted
    assert COUNT not in pod["metadata"]["labels"]


def test_amounts_are_of_each_card() -> None:
    pod = translated(asking({GPU: "2", GPUMEM: "3000", "nvidia.com/gpucores": "10"}))
    assert limits(pod) == {MEM: "6", PERCENT: "10"}
    assert pod["metadata"]["labels"] == {COUNT: "2"}
    assert pod["metadata"]["annotations"]["gpupool.io/translated"] == (
        "main: nvidia.com/gpu=2, nvidia.com/gpumem=3000, nvidia.com/gpucores=10 -> "
        "aliyun.com/gpu-mem=6, aliyun.com/gpu-core.percentage=10 "
        "(3 units on each of 2 cards, 3226 MiB or more)"
    )


KAI = {
    "a fraction": ({"gpu-fraction": "0.5"}, {MEM: "8"}, {}),
    "memory": ({"gpu-memory": "2000"}, {MEM: "2"}, {}),
    "of several cards": (
        {"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"},
        {MEM: "8"},
        {COUNT: "2"},
    ),
    "memory of several cards": (
        {"gpu-memory": "1024", "gpu-fraction-num-devices": "3"},
        {MEM: "3"},
        {COUNT: "3"},
    ),
}


@pytest.mark.parametrize("case", KAI)
def test_annotations_of_kai_become_ours(case: str) -> None:
    asked, wanted, labels = KAI[case]
    pod = translated(kai(asked))
    assert limits(pod) == wanted
    assert pod["metadata"]["labels"] == {"kai.scheduler/queue": "default-queue", **labels}
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    note = pod["metadata"]["annotations"].pop("gpupool.io/translated")
    assert "kai.scheduler/queue=default-queue has no effect" in note
    assert "schedulerName=kai-scheduler -> the scheduler of gpupool" in note
    assert not pod["metadata"]["annotations"]  # it may pass admission again


def test_kai_means_the_first_container_unless_another_is_named() -> None:
    both: Any = [{"name": "a"}, {"name": "b"}]
    pod = translated(kai({"gpu-memory": "1024"}, containers=copy.deepcopy(both)))
    assert limits(pod) == {MEM: "1"}
    named = {"gpu-memory": "1024", "gpu-fraction-container-name": "b"}
    pod = translated(kai(named, containers=both))
    assert limits(pod, 1) == {MEM: "1"}
    assert "resources" not in pod["spec"]["containers"][0]


def test_names_without_a_domain_mean_nothing_without_kai() -> None:
    pod = asking(annotations={"gpu-memory": "2000"})
    before = copy.deepcopy(pod)
    assert translated(pod) == before


def test_whole_cards_of_kai_come_to_our_scheduler() -> None:
    pod = asking({GPU: "1"}, schedulerName="kai-scheduler")
    assert translated(pod)["spec"]["schedulerName"] == "default-scheduler"
    plain = asking(schedulerName="kai-scheduler")
    assert translated(plain)["spec"]["schedulerName"] == "kai-scheduler"


def test_gpu_fractioning_names_its_containers() -> None:
    prefix = "nvidia.com/container.main"
    asked = {
        f"{prefix}.gpu-memory.limit": "4Gi",
        f"{prefix}.gpu-memory.request": "4096Mi",
        f"{prefix}.gpu-compute.mode": "time-slicing",
    }
    pod = translated(asking(annotations=asked))
    assert limits(pod) == {MEM: "4"}
    assert list(pod["metadata"]["annotations"]) == ["gpupool.io/translated"]
    assert limits(translated(asking(annotations={f"{prefix}.gpu-memory.limit": "1"}))) == {MEM: "1"}


def test_the_choice_of_cards_keeps_its_meaning() -> None:
    asked = {
        "nvidia.com/use-gputype": "A100, V100",
        "nvidia.com/nouse-gputype": "1080",
        "nvidia.com/use-gpuuuid": "GPU-1,GPU-2",
        "nvidia.com/nouse-gpuuuid": "GPU-3",
        "hami.io/gpu-scheduler-policy": "binpack",
    }
    pod = translated(asking({GPU: "1"}, asked))
    annotations = pod["metadata"]["annotations"]
    assert "hami.io/gpu-scheduler-policy=binpack has no effect" in annotations.pop(
        "gpupool.io/translated"
    )
    assert annotations == {
        "gpupool.io/card-models": "*A100*,*V100*",
        "gpupool.io/avoid-card-models": "*1080*",
        "gpupool.io/card-uuids": "GPU-1,GPU-2",
        "gpupool.io/avoid-card-uuids": "GPU-3",
    }


def test_a_part_is_exact_where_the_model_or_the_node_is_known() -> None:
    half = {GPU: "1", "nvidia.com/gpumem-percentage": "50"}
    assert limits(translated(asking(half, {"nvidia.com/use-gputype": "A100"}), MIXED)) == {
        MEM: "40"
    }
    chosen = asking(half, nodeSelector={"kind": V100[0]})
    assert limits(translated(chosen, MIXED)) == {MEM: "8"}
    # Cards with the same number of units give the same answer.
    assert limits(translated(asking(half), cards_of(V100, T4))) == {MEM: "8"}


WRONG: dict[str, tuple[Obj, ClusterCards]] = {
    "wanted cards of one size to take a part of, found Tesla V100-SXM2-16GB (15 units), "
    "A100-SXM4-80GB (80 units); name a model": (kai({"gpu-fraction": "0.5"}), MIXED),
    "to take a part of, found no shared card that the pod may use": (
        asking({GPU: "1", "nvidia.com/gpumem-percentage": "50"}),
        ClusterCards(),
    ),
    "limits[nvidia.com/gpumem]: wanted no more than a card has (Tesla V100": (
        asking({GPU: "1", GPUMEM: "16131"}),
        V100S,
    ),
    "wanted nvidia.com/gpumem or nvidia.com/gpumem-percentage, found both": (
        asking({GPUMEM: "1", "nvidia.com/gpumem-percentage": "1"}),
        V100S,
    ),
    "limits[nvidia.com/gpucores]: wanted a whole number, 0 to 100, found 120": (
        asking({GPU: "1", "nvidia.com/gpucores": "120"}),
        V100S,
    ),
    "limits[nvidia.com/gpu]: wanted a whole number, 1 to 64, found 0": (
        asking({GPU: "0", GPUMEM: "1000"}),
        V100S,
    ),
    "limits[nvidia.com/gpumem]: wanted a whole number of MiB, 0 or more, found x": (
        asking({GPUMEM: "x"}),
        V100S,
    ),
    "limits[nvidia.com/priority]: wanted none": (
        asking({GPU: "1", "nvidia.com/priority": "1"}),
        V100S,
    ),
    "annotations[nvidia.com/vgpu-mode]: wanted none or hami-core": (
        asking({GPU: "1"}, {"nvidia.com/vgpu-mode": "mig"}),
        V100S,
    ),
    "limits[aliyun.com/gpu-core.tflops]: wanted a part": (
        asking({MEM: "1", "aliyun.com/gpu-core.tflops": "2"}),
        V100S,
    ),
    "wanted it or aliyun.com/gpu-mem, found both": (asking({MEM: "1", GPUMEM: "1"}), V100S),
    "wanted it or gpupool.io/card-models, found both": (
        asking({GPU: "1"}, {"gpupool.io/card-models": "T4", "nvidia.com/use-gputype": "V100"}),
        V100S,
    ),
    "wanted one number of cards for all shares, found 2 and 4": (
        asking({GPU: "2", GPUMEM: "1"}, labels={COUNT: "4"}),
        V100S,
    ),
    "wanted words of HAMi or of KAI, found both": (
        kai({"gpu-memory": "1"}, containers=[asking({GPUMEM: "1"})["spec"]["containers"][0]]),
        V100S,
    ),
    "wanted gpu-fraction or gpu-memory, found both": (
        kai({"gpu-fraction": "0.5", "gpu-memory": "1"}),
        V100S,
    ),
    "annotations[gpu-fraction]: wanted a number between 0 and 1, found 1": (
        kai({"gpu-fraction": "1"}),
        V100S,
    ),
    "annotations[gpu-memory.limit]: wanted none, because a share does not grow": (
        kai({"gpu-memory": "1", "gpu-memory.limit": "2"}),
        V100S,
    ),
    "annotations[gpu-fraction-container-name]: wanted a container of the pod, found x": (
        kai({"gpu-memory": "1", "gpu-fraction-container-name": "x"}),
        V100S,
    ),
    "as in the limit, because a share does not grow by itself here, found 1Gi": (
        asking(
            annotations={
                "nvidia.com/container.main.gpu-memory.limit": "2Gi",
                "nvidia.com/container.main.gpu-memory.request": "1Gi",
            }
        ),
        V100S,
    ),
    "wanted a limit, because shares are held to one here": (
        asking(annotations={"nvidia.com/container.main.gpu-memory.request": "1Gi"}),
        V100S,
    ),
    "wanted the name of a container of the pod, found none": (
        asking(annotations={"nvidia.com/container.other.gpu-memory.limit": "1Gi"}),
        V100S,
    ),
    "gpu-compute.mode]: wanted time-slicing": (
        asking(
            annotations={
                "nvidia.com/container.main.gpu-memory.limit": "2Gi",
                "nvidia.com/container.main.gpu-compute.mode": "sm-sharing",
            }
        ),
        V100S,
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_meant_exactly_is_refused_in_words(words: str) -> None:
    pod, cards = WRONG[words]
    response = review_pod(review(pod), RULES, cards, ALL)["response"]
    assert not response["allowed"]
    assert words in response["status"]["message"]


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "", "0", "1e-9999999", "0.1" + "1" * 20, "½"])
def test_strange_fractions_are_refused(text: str) -> None:
    assert translate(kai({"gpu-fraction": text}), V100S, ALL).wrong


def test_a_pod_may_pass_admission_again() -> None:
    pod = asking({GPU: "2", GPUMEM: "3000"}, {"nvidia.com/use-gputype": "V100"})
    once = copy.deepcopy(translated(pod))
    assert translated(pod) == once


def test_words_of_a_system_that_runs_here_are_left_alone() -> None:
    pod = asking({GPU: "1", GPUMEM: "3000"}, {"nvidia.com/use-gputype": "V100"})
    before = copy.deepcopy(pod)
    translate(pod, V100S, ALL - {System.HAMI})
    assert pod == before


def test_a_translated_pod_is_wired_to_its_allocation() -> None:
    response = review_pod(review(kai({"gpu-fraction": "0.2"})), RULES, V100S, ALL)["response"]
    pod = applied(kai({"gpu-fraction": "0.2"}), response)
    assert pod["spec"]["schedulerName"] == "gpupool-scheduler"
    assert environment(pod)["ALIYUN_COM_GPU_MEM_CONTAINER"] == "3"


def test_a_system_is_found_by_what_it_puts_on_nodes_and_into_the_api() -> None:
    def node(annotations: Obj | None = None, capacity: Obj | None = None) -> Obj:
        return {"metadata": {"annotations": annotations}, "status": {"capacity": capacity}}

    assert of_node(node()) == frozenset()
    assert of_node(node({"hami.io/node-nvidia-register": "x"})) == {System.HAMI}
    assert of_node(node(capacity={"volcano.sh/vgpu-number": "10"})) == {System.VOLCANO}
    assert of_node(node(capacity={"volcano.sh/vgpu-number": "0"})) == frozenset()
    assert of_node(node(capacity={"aliyun.com/gpu": "8"})) == {System.ACK}
    groups = ["apps", "scheduling.run.ai", "gpu-fractioning.kai.scheduler"]
    assert of_api_groups(groups) == {System.KAI, System.FRACTIONING}


def test_where_a_system_runs_the_setting_decides() -> None:
    running = {System.KAI}
    assert understood("auto", running) == ALL - running
    assert understood("all", running) == ALL
    assert understood("none", set()) == frozenset()
