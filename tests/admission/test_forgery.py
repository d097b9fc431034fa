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


@pytest.mark.parametrize(
    "strange",
    [{}, [], {"request": {}}, {"apiVersion": "v1", "request": {"uid": "1", "object": {}}}],
)
def test_a_body_that_is_no_review_is_refused(strange: Obj) -> None:
    with pytest.raises(BadReview):
        review_allocation(strange, RULES)
    with pytest.raises(BadReview):
        review_pod(strange, RULES, BOTH_POOLS)
