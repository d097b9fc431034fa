"""GPU requests of containers from limits and labels; bad requests are reported, not guessed."""

from typing import Any

import pytest

from gpupool.contract.gpu_asks import gpu_asks
from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import CardPlacement, GpuAsk

GPU, MEM, PERCENT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"


def container(name: str = "c", restart: str = "", **limits: str) -> dict[str, Any]:
    by_name = {"gpu": GPU, "mem": MEM, "percent": PERCENT}
    found: dict[str, Any] = {
        "name": name,
        "resources": {"limits": {by_name[key]: value for key, value in limits.items()}},
    }
    return found | ({"restartPolicy": restart} if restart else {})


def pod(*containers: dict[str, Any], init: Any = (), **labels: str) -> dict[str, Any]:
    by_name = {
        "count": "aliyun.com/gpu-count",
        "placement": "gpupool.io/card-placement",
        "same": "gpupool.io/same-card",
        "different": "gpupool.io/different-card",
    }
    return {
        "metadata": {"name": "p", "labels": {by_name[key]: value for key, value in labels.items()}},
        "spec": {"containers": list(containers), "initContainers": list(init)},
    }


def test_whole_cards_and_shares_are_told_apart() -> None:
    asks = gpu_asks(pod(container("a", gpu="2"), container("b", mem="3"), container("c")))
    assert asks.asks == (GpuAsk("a", whole=2), GpuAsk("b", units=3))
    assert not asks.wrong


def test_more_cards_than_any_node_has_are_an_ordinary_request() -> None:
    assert gpu_asks(pod(container(gpu="99"))).asks == (GpuAsk("c", whole=99),)
    assert gpu_asks(pod(container(gpu="1G"))).wrong


def test_a_share_over_several_cards_is_divided() -> None:
    asks = gpu_asks(pod(container(mem="8", percent="20"), count="4"))
    assert asks.asks == (GpuAsk("c", units=2, cards=4, percent=20),)


def test_init_containers_run_alone_and_sidecars_do_not() -> None:
    init = [container("i", gpu="1"), container("s", "Always")]
    assert gpu_asks(pod(container(gpu="1"), init=init)).asks == (
        GpuAsk("i", whole=1, is_init=True),
        GpuAsk("c", whole=1),
    )
    sidecar = [container("s", "Always", mem="1")]
    assert gpu_asks(pod(container(mem="1"), init=sidecar)).asks[0] == GpuAsk("s", units=1)


def test_a_container_may_ask_to_run_without_isolation() -> None:
    made = pod(container("a", mem="3"), container("b", mem="3"))
    made["metadata"]["annotations"] = {"gpupool.io/no-isolation": "b"}
    assert [ask.unisolated for ask in gpu_asks(made).asks] == [False, True]


def test_labels_choose_cards() -> None:
    asks = gpu_asks(pod(container(mem="1"), placement="spread", same="a", different="b"))
    assert asks.placement is CardPlacement.SPREAD
    assert (asks.same_card, asks.different_card) == ("a", "b")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (pod(container(mem="8"), count="3"), "gpu-count=3 with 8 units"),
        (pod(container(mem="8"), count="x"), "gpu-count=x"),
        (pod(container(mem="8"), count="0"), "gpu-count=0"),
        (pod(container(mem="8"), count="99999999999"), "gpu-count=9"),
        (pod(container(percent="20")), f"{PERCENT} without {MEM}"),
        (pod(container(gpu="1", mem="1")), "together with a share"),
        (
            pod(container(mem="8", percent="101")),
            f"{PERCENT}=101 (at most 100 is possible) in container c",
        ),
        (
            pod(container(gpu="9" * 20)),
            f"nvidia.com/gpu={'9' * 20} (at most 1000000 is possible) in container c",
        ),
        (pod(container(mem="9" * 20)), f"{MEM}={'9' * 20} (at most 67108864 is possible)"),
        (pod(container(gpu="-3")), "nvidia.com/gpu=-3 (less than 0) in container c"),
        (pod(container(gpu="many")), "nvidia.com/gpu=many (no number) in container c"),
        (pod(container(gpu="9" * 5000)), "999... (no number)"),
        (pod(container(gpu="1"), same="a"), "with whole GPUs"),
        (pod(container(mem="1"), placement="sideways"), "card-placement=sideways"),
        (
            pod(container(), init=[container("i", gpu="1"), container("s", "Always", gpu="1")]),
            "a sidecar",
        ),
        (pod(*(container(f"c{i}", mem="1") for i in range(33))), "more than 32"),
    ],
)
def test_bad_gpu_requests_are_named(made: dict[str, Any], words: str) -> None:
    (wrong,) = gpu_asks(made).wrong
    assert words in wrong


def test_the_cards_that_a_pod_accepts_are_read_from_its_annotations() -> None:
    made = pod(container(mem="3"))
    made["metadata"]["annotations"] = {
        "gpupool.io/card-models": "V100, A100,V100",
        "gpupool.io/avoid-card-models": "T4",
        "gpupool.io/card-uuids": "GPU-1,GPU-2,",
        "gpupool.io/avoid-card-uuids": "GPU-3",
    }
    asks = gpu_asks(made)
    assert asks.choice == CardChoice(("V100", "A100"), ("T4",), ("GPU-1", "GPU-2"), ("GPU-3",))
    assert not asks.wrong


@pytest.mark.parametrize("text", ["", " , ", ",".join(map(str, range(65))), "x" * 129])
def test_a_list_of_cards_that_is_empty_or_endless_is_reported(text: str) -> None:
    made = pod(container(mem="3"))
    made["metadata"]["annotations"] = {"gpupool.io/card-models": text}
    (wrong,) = gpu_asks(made).wrong
    assert wrong.startswith("metadata.annotations[gpupool.io/card-models]: wanted 1 to 64 names")
