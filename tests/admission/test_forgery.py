import pytest

from gpupool.admission.review import BadReview, review_allocation, review_pod
from kubeclient.objects import Obj
from tests.admission.pods import BOTH_POOLS, RULES, container, pod, review


def annotated(**annotations: str) -> Obj:
    made = pod(container())
    made["metadata"]["annotations"] = annotations
    return made


def verdict(new: Obj, old: Obj | None, user: str = "someone") -> Obj:
    response: Obj = review_allocation(review(new, old, user), RULES)["response"]
    return response


KEYS = ["gpupool.io/allocation", "ALIYUN_COM_GPU_MEM_IDX", "limits.gpupool.io/main"]


@pytest.mark.parametrize("key", KEYS)
def test_nobody_creates_a_pod_with_an_allocation(key: str) -> None:
    found = verdict(annotated(**{key: "x"}), None)
    assert found["status"]["message"] == (
        f'metadata.annotations[{key}]: wanted none, because only the scheduler writes it, found "x"'
    )


@pytest.mark.parametrize("key", KEYS)
def test_nobody_changes_or_removes_an_allocation(key: str) -> None:
    assert not verdict(annotated(**{key: "y"}), annotated(**{key: "x"}))["allowed"]
    assert not verdict(annotated(), annotated(**{key: "x"}))["allowed"]


def test_a_limit_of_several_lines_is_shown_on_one_line() -> None:
    old = annotated(**{"limits.gpupool.io/main": "GPU-a 3226 0\nGPU-b 3226 0\n"})
    said = verdict(annotated(), old)["status"]["message"]
    assert 'wanted "GPU-a 3226 0 GPU-b 3226 0", because' in said


@pytest.mark.parametrize("key", KEYS)
def test_the_scheduler_may_write_an_allocation(key: str) -> None:
    assert verdict(annotated(**{key: "y"}), None, "system:kube-scheduler")["allowed"]


def test_other_annotations_may_be_changed() -> None:
    assert verdict(annotated(a="1", **{KEYS[0]: "x"}), annotated(**{KEYS[0]: "x"}))["allowed"]


DEVICES = [
    "nvidia.cdi.k8s.io/container.main",
    "nvidia.cdi.k8s.io/pod",
    "nvidia.cdi.k8s.io",
    "cdi.k8s.io/anything",
    "cdi.k8s.io",
    "nvidia.com/container.main.gpus.devices",
    "nvidia.com/container.main.devices",
]


@pytest.mark.parametrize("key", DEVICES)
def test_nobody_gives_himself_a_card_by_annotations_of_other_programs(key: str) -> None:
    card = {key: "nvidia.com/gpu=GPU-of-somebody"}
    assert not verdict(annotated(**card), None)["allowed"]
    assert not verdict(annotated(**card), annotated())["allowed"]
    assert verdict(annotated(a="1", **card), annotated(**card))["allowed"]
    assert verdict(annotated(**card), None, "system:kube-scheduler")["allowed"]


def test_the_operators_own_pods_keep_their_management_devices() -> None:
    key = "nvidia.cdi.k8s.io/container.main"
    assert verdict(annotated(**{key: "management.nvidia.com/gpu=all"}), None)["allowed"]
    assert not verdict(annotated(**{"cdi.k8s.io/x": "management.nvidia.com/gpu=all"}), None)[
        "allowed"
    ]
    both = "management.nvidia.com/gpu=all, nvidia.com/gpu=0"
    assert not verdict(annotated(**{key: both}), None)["allowed"]


def test_an_amount_of_gpu_memory_is_no_device() -> None:
    key = "nvidia.com/container.main.gpu-memory.limit"
    assert verdict(annotated(**{key: "4Gi"}), None)["allowed"]


@pytest.mark.parametrize(
    "strange",
    [{}, [], {"request": {}}, {"apiVersion": "v1", "request": {"uid": "1", "object": {}}}],
)
def test_a_body_that_is_no_review_is_refused(strange: Obj) -> None:
    with pytest.raises(BadReview):
        review_allocation(strange, RULES)
    with pytest.raises(BadReview):
        review_pod(strange, RULES, BOTH_POOLS)
