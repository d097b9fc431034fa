import pytest

from gpupool.admission.cards import ClusterCards
from tests.admission.pods import admitted, container, pod, refusal

LIMITS = "spec.containers[0].resources.limits"


@pytest.mark.parametrize(
    ("amount", "shown"), [("0.5", "0.5"), ("500m", "0.5"), ("x", "x"), ("1500m", "1.5")]
)
def test_only_whole_numbers_of_cards_are_given_out(amount: str, shown: str) -> None:
    said = refusal(pod(container(gpu=amount)))
    assert said == f"{LIMITS}[nvidia.com/gpu]: wanted a whole number, found {shown}"


def test_a_negative_number_is_refused() -> None:
    said = refusal(pod(container(gpu_mem=-1)))
    assert said == f"{LIMITS}[aliyun.com/gpu-mem]: wanted 0 or more, found -1"


def test_a_request_that_differs_from_its_limit_is_refused() -> None:
    asked = container(gpu_mem=3)
    asked["resources"]["requests"]["aliyun.com/gpu-mem"] = "2"
    assert refusal(pod(asked)) == (
        "spec.containers[0].resources.requests[aliyun.com/gpu-mem]: wanted 3 as in limits, found 2"
    )


def test_gpus_in_requests_only_are_refused() -> None:
    asked = container(gpu=1)
    del asked["resources"]["limits"]
    assert "wanted GPUs in limits, found 1 in requests only" in refusal(pod(asked))


def test_gpus_in_limits_only_are_accepted() -> None:
    asked = container(gpu=1)
    del asked["resources"]["requests"]
    assert admitted(pod(asked))


def test_whole_and_shared_cards_in_one_container_are_refused() -> None:
    assert "found both" in refusal(pod(container(gpu=1, gpu_mem=3)))


def test_memory_that_cannot_be_spread_evenly_is_refused() -> None:
    said = refusal(pod(container(gpu_mem=7), labels={"aliyun.com/gpu-count": "2"}))
    assert said == (
        f"{LIMITS}[aliyun.com/gpu-mem]: wanted a multiple of the 2 cards of label "
        "aliyun.com/gpu-count, found 7"
    )


@pytest.mark.parametrize("count", ["0", "-1", "x", "1.5", "65", "٣", "9" * 30, "0" * 5000 + "1"])
def test_a_count_of_cards_is_a_number(count: str) -> None:
    said = refusal(pod(container(gpu_mem=7), labels={"aliyun.com/gpu-count": count}))
    assert said.startswith("metadata.labels[aliyun.com/gpu-count]: wanted a number of cards")


def test_a_share_larger_than_any_card_is_refused() -> None:
    assert refusal(pod(container(gpu_mem=16))) == (
        f"{LIMITS}[aliyun.com/gpu-mem]: wanted a number of GiB, at most 15 as the largest shared "
        "card has, found 16"
    )


def test_a_refusal_quotes_the_amount_as_it_was_written() -> None:
    assert refusal(pod(container(gpu_mem="3Gi"))).endswith(
        "a number of GiB, at most 15 as the largest shared card has, found 3Gi; write the "
        "number without a unit"
    )
    said = refusal(pod(container(gpu_mem=40), labels={"aliyun.com/gpu-count": "2"}))
    assert said.endswith("at most 2 times 15 as the largest shared card has, found 40")


def test_a_share_over_several_cards_is_compared_with_several_cards() -> None:
    assert admitted(pod(container(gpu_mem=30), labels={"aliyun.com/gpu-count": "2"}))


def test_without_shared_cards_a_share_of_any_size_is_accepted() -> None:
    assert admitted(pod(container(gpu_mem=100)), ClusterCards())


def test_a_share_with_a_node_name_is_refused() -> None:
    said = refusal(pod(container(gpu_mem=3), nodeName="n1"))
    assert said.startswith("spec.nodeName: wanted none")
    assert said.endswith("found n1")


@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "ALIYUN_COM_GPU_MEM_CONTAINER"])
def test_our_own_variables_are_refused(name: str) -> None:
    asked = container(gpu_mem=3)
    asked["env"] = [{"name": "A"}, {"name": name, "value": "all"}]
    said = refusal(pod(asked))
    assert said.startswith("spec.containers[0].env[1].name: wanted a name")
    assert said.endswith(f"found {name}")


@pytest.mark.parametrize("percent", [0, 101])
def test_a_compute_share_is_a_part_of_a_card(percent: int) -> None:
    said = refusal(pod(container(gpu_mem=3, percent=percent)))
    assert f"wanted 1 to 100 percent of a card, found {percent}" in said


def test_a_compute_share_needs_memory() -> None:
    assert "wanted aliyun.com/gpu-mem beside it, found none" in refusal(pod(container(percent=50)))
    said = refusal(pod(container(percent=50, gpu=1)))
    assert said.endswith("wanted aliyun.com/gpu-mem beside it, found nvidia.com/gpu")


def test_all_problems_are_reported_at_once() -> None:
    said = refusal(pod(container("a", gpu="0.5"), container("b", gpu="0.2")))
    assert "spec.containers[0]" in said
    assert "spec.containers[1]" in said
