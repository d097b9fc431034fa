import copy

from hypothesis import given
from hypothesis import strategies as st

from gpupool.admission.review import Rules, review_pod
from gpupool.contract.names import EXTENDER_PROFILE
from kubeclient.objects import Obj
from tests.admission.pods import (
    BOTH_POOLS,
    admitted,
    answered,
    applied,
    container,
    environment,
    pod,
    refusal,
    review,
)


def test_a_whole_card_reaches_its_container_by_an_annotation() -> None:
    made = admitted(pod(container("main", gpu=1)))
    assert made["spec"]["schedulerName"] == "gpupool-scheduler"
    assert environment(made) == {
        "NVIDIA_VISIBLE_DEVICES": "metadata.annotations['devices.gpupool.io/main']"
    }
    assert "volumes" not in made["spec"]


def test_a_share_gets_its_size_its_limit_file_and_its_region() -> None:
    made = admitted(pod(container("main", gpu_mem=3)))
    assert environment(made) == {
        "NVIDIA_VISIBLE_DEVICES": "metadata.annotations['devices.gpupool.io/main']",
        "ALIYUN_COM_GPU_MEM_IDX": "metadata.annotations['indexes.gpupool.io/main']",
        "ALIYUN_COM_GPU_MEM_POD": "metadata.annotations['ALIYUN_COM_GPU_MEM_POD']",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "3",
        "ALIYUN_COM_GPU_MEM_DEV": "metadata.annotations['card-memory.gpupool.io/main']",
        "CGPU_DISABLE": "metadata.annotations['no-isolation.gpupool.io/main']",
    }
    item = made["spec"]["volumes"][0]["downwardAPI"]["items"][0]
    assert item["fieldRef"]["fieldPath"] == "metadata.annotations['limits.gpupool.io/main']"
    assert [m["mountPath"] for m in made["spec"]["containers"][0]["volumeMounts"]] == [
        "/etc/gpupool",
        "/run/gpupool",
    ]


def test_a_container_that_asks_for_zero_sees_no_card_and_gets_no_limit() -> None:
    asked = pod(container("main", gpu_mem=0))
    assert list(environment(admitted(asked))) == ["NVIDIA_VISIBLE_DEVICES"]
    assert "warnings" not in answered(asked)
    assert admitted(pod(container("main", gpu_mem=3, gpu=0)))


def test_every_container_has_its_own_keys() -> None:
    made = admitted(pod(container("a", gpu_mem=3), container("b", gpu_mem=2), container("c")))
    assert "'devices.gpupool.io/a'" in environment(made, 0)["NVIDIA_VISIBLE_DEVICES"]
    assert "'devices.gpupool.io/b'" in environment(made, 1)["NVIDIA_VISIBLE_DEVICES"]
    assert len(made["spec"]["volumes"]) == 4
    assert environment(made, 2) == {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_init_containers_get_the_variables_too() -> None:
    made = admitted(pod(container("main", gpu_mem=1), initContainers=[container("i", gpu=1)]))
    assert made["spec"]["initContainers"][0]["env"][0]["name"] == "NVIDIA_VISIBLE_DEVICES"


def test_a_share_over_many_cards_states_its_size_on_each_card() -> None:
    made = admitted(pod(container(gpu_mem=8), labels={"aliyun.com/gpu-count": "4"}))
    assert environment(made)["ALIYUN_COM_GPU_MEM_CONTAINER"] == "2"


def test_beside_kube_scheduler_a_pod_gets_its_profile_for_gpus() -> None:
    rules = Rules(frozenset(), EXTENDER_PROFILE)
    for name, wanted in (("default-scheduler", EXTENDER_PROFILE), ("other", "other")):
        asked = pod(container(gpu=1), schedulerName=name)
        answer = review_pod(review(asked), rules, BOTH_POOLS)["response"]
        assert applied(asked, answer)["spec"]["schedulerName"] == wanted


def test_another_scheduler_that_was_named_is_kept() -> None:
    asked = pod(container(gpu=1), schedulerName="other")
    assert admitted(asked)["spec"]["schedulerName"] == "other"


def test_the_users_environment_stays_and_ours_comes_last() -> None:
    asked = container("main", gpu=1)
    asked["env"] = [{"name": "A", "value": "1"}]
    assert list(environment(admitted(pod(asked)))) == ["A", "NVIDIA_VISIBLE_DEVICES"]


def test_a_request_for_no_isolation_becomes_an_annotation() -> None:
    asked = container("main", gpu_mem=3)
    asked["env"] = [{"name": "CGPU_DISABLE", "value": "true"}]
    made = admitted(pod(asked))
    assert made["metadata"]["annotations"] == {"gpupool.io/no-isolation": "main"}
    assert environment(made)["CGPU_DISABLE"].startswith("metadata.annotations")


@given(st.sampled_from([{"gpu": 1}, {"gpu_mem": 3}, {"gpu_mem": 2, "percent": 50}]))
def test_admitting_twice_changes_nothing_more(limits: dict[str, int]) -> None:
    # A webhook may be called again after others, or a pod is created from a copy of another one.
    asked = container("main", **limits)
    asked["env"] = [{"name": "CGPU_DISABLE", "value": "true"}]
    once = admitted(pod(asked))
    again = answered(copy.deepcopy(once))
    assert again["allowed"], again
    assert "patch" not in again


def test_a_copy_that_asks_for_another_share_states_its_own_size() -> None:
    copied = admitted(pod(container("main", gpu_mem=3)))
    for asked in copied["spec"]["containers"][0]["resources"].values():
        asked["aliyun.com/gpu-mem"] = 2
    assert environment(admitted(copied))["ALIYUN_COM_GPU_MEM_CONTAINER"] == "2"


def test_a_variable_of_another_container_is_refused() -> None:
    made = admitted(pod(container("main", gpu_mem=3), container("other", gpu_mem=3)))
    main, other = made["spec"]["containers"]
    main["env"] = other["env"]
    assert "found NVIDIA_VISIBLE_DEVICES" in refusal(made)


def test_a_share_that_names_no_pool_is_warned_about() -> None:
    (warning,) = answered(pod(container(gpu_mem=3)))["warnings"]
    assert "cgpu.disable.isolation" in warning


def test_a_share_that_names_its_pool_is_not_warned_about() -> None:
    asked = pod(container(gpu_mem=3), nodeSelector={"cgpu.disable.isolation": "true"})
    assert "warnings" not in answered(asked)
    requirement = {"key": "cgpu.disable.isolation", "operator": "NotIn", "values": ["true"]}
    asked = pod(container(gpu_mem=3), affinity=required_node(requirement))
    assert "warnings" not in answered(asked)


def test_a_selector_that_matches_both_kinds_of_pool_is_warned_about() -> None:
    assert answered(pod(container(gpu_mem=3), nodeSelector={"cgpu": "true"}))["warnings"]
    requirement = {"key": "cgpu", "operator": "Exists"}
    assert answered(pod(container(gpu_mem=3), affinity=required_node(requirement)))["warnings"]


def test_an_affinity_that_cannot_be_read_is_left_to_validation() -> None:
    asked = pod(container(gpu_mem=3), affinity=required_node({"key": "a", "operator": "?"}))
    assert "warnings" not in answered(asked)


def required_node(requirement: Obj) -> Obj:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
