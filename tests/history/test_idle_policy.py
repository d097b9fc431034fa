"""Only workloads that are certainly idle are warned, and only after a warning are they scaled."""

from dataclasses import replace
from typing import Any

import pytest

from gpupool.core.gpu import CardShare
from gpupool.history.facts import Held
from gpupool.history.idle_policy import (
    NOTHING,
    IdlePolicy,
    IdleWorkload,
    Step,
    idle_workloads,
    keeps_idle,
    step,
)
from gpupool.history.usage import IdlePod
from kubeclient.objects import Obj

HOUR = 3600
NOW = 1_700_006_400
POLICY = IdlePolicy(4 * HOUR, 24 * HOUR)
SHARE = CardShare("GPU-a", 0, 3, 3226, 15)
NOTE, WARNED = "gpupool.io/idle-replicas", "gpupool.io/idle-warned"


def held(pod: str, workload: str = "Deployment/trainer", container: str = "main") -> Held:
    who = ("research", pod, container, f"uid-{pod}", workload, "ann", "n1")
    return Held(*who, (SHARE,), 0, 3, 0, None)


def idle(pod: str, container: str = "main", since_s: int = NOW - 30 * HOUR) -> IdlePod:
    where = ("research", pod, container, "n1", "", "ann", 1, 3226, 0.2)
    return IdlePod(*where, since_s, since_s)


def resting(since_s: int = NOW - 30 * HOUR, pods: int = 2) -> IdleWorkload:
    members = tuple(held(f"trainer-{number}") for number in range(pods))
    return IdleWorkload("research", "Deployment/trainer", members, 0.4, since_s)


def deployment(warned: str | None = None, **changes: Any) -> Obj:
    limits = {"limits": {"aliyun.com/gpu-mem": "3"}}
    template = {
        "metadata": {"labels": {"app": "trainer"}},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": limits}]},
    }
    return {
        "metadata": {
            "name": "trainer",
            "resourceVersion": "7",
            "annotations": {} if warned is None else {WARNED: warned},
            **changes.pop("metadata", {}),
        },
        "spec": {"replicas": 2, "template": template, **changes},
    }


def chosen(workload: Obj, since_s: int = NOW - 30 * HOUR, policy: IdlePolicy = POLICY) -> Step:
    return step(workload, resting(since_s), policy, NOW, is_long=NOW - since_s >= 24 * HOUR)


LONG_AGO = "2023-11-14T02:00:00Z"  # 22 hours before NOW


def test_a_workload_is_idle_if_every_container_with_cards_is() -> None:
    all_of_it = [held("a"), held("a", container="side"), held("b")]
    assert not idle_workloads([idle("a"), idle("b")], all_of_it)
    known = [idle("a"), idle("a", "side", NOW - 5 * HOUR), idle("b")]
    [found] = idle_workloads(known, all_of_it)
    assert (found.name, len(found.pods)) == ("Deployment/trainer", 2)
    assert found.since_s == NOW - 5 * HOUR  # the last one that worked
    assert found.cards == pytest.approx(0.6)


def test_workloads_of_one_name_in_two_namespaces_are_two() -> None:
    other = replace(held("a"), namespace="ads")
    [found] = idle_workloads([idle("a")], [held("a"), other])
    assert found.namespace == "research"


def test_nothing_is_scaled_before_it_was_warned_for_long_enough() -> None:
    first = chosen(deployment())
    assert first.change == {
        "metadata": {"resourceVersion": "7", "annotations": {WARNED: "2023-11-15T00:00:00Z"}}
    }
    assert "at 2023-11-15 20:00 UTC" in first.event  # 20 hours from now, not at once
    assert "label deployment/trainer gpupool.io/keep-idle=true" in first.event
    assert not first.replicas
    waits = chosen(deployment("2023-11-14T10:00:00Z"))
    assert (waits.change, waits.replicas) == (None, 0)
    assert "at 2023-11-15 06:00 UTC" in waits.event


def test_a_workload_that_was_warned_is_scaled_and_says_how_to_restore_it() -> None:
    found = chosen(deployment(LONG_AGO))
    assert found.replicas == 2
    assert found.change == {
        "metadata": {"resourceVersion": "7", "annotations": {NOTE: "2", WARNED: None}},
        "spec": {"replicas": 0},
    }
    assert "Scaled from 2 to 0 replicas" in found.event
    assert "gpupool idle --restore Deployment/trainer -n research" in found.event
    assert "kubectl -n research scale deployment/trainer --replicas=2" in found.event


@pytest.mark.parametrize(
    "warned",
    [
        pytest.param("2023-11-10T00:00:00Z", id="of an earlier idle time"),
        pytest.param("2033-11-10T00:00:00Z", id="of the future"),
        pytest.param("2023-11-14T02:00:00", id="of no time zone"),
        pytest.param("9999-99-99", id="no time"),
        pytest.param("0001-01-01T00:00:00+23:59", id="before all time"),
        pytest.param("", id="empty"),
    ],
)
def test_a_warning_that_means_nothing_is_given_again(warned: str) -> None:
    found = chosen(deployment(warned))
    assert found.change is not None
    assert found.change["metadata"]["annotations"] == {WARNED: "2023-11-15T00:00:00Z"}
    assert not found.replicas


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(deployment(LONG_AGO, replicas=3), id="one of its pods is missing"),
        pytest.param(deployment(LONG_AGO, replicas=0), id="it is at zero"),
        pytest.param(deployment(LONG_AGO, template={"spec": {"containers": []}}), id="no cards"),
        pytest.param(
            deployment(LONG_AGO, metadata={"deletionTimestamp": "2023-11-14T00:00:00Z"}), id="ends"
        ),
        pytest.param(
            deployment(metadata={"labels": {"gpupool.io/keep-idle": "true"}}), id="its label"
        ),
        pytest.param(
            deployment(template={"metadata": {"labels": {"gpupool.io/keep-idle": ""}}, "spec": {}}),
            id="label of its pods",
        ),
    ],
)
def test_a_workload_is_left_alone(workload: Obj) -> None:
    assert chosen(workload) == NOTHING


def test_only_false_means_that_a_workload_may_be_scaled() -> None:
    def labelled(value: str) -> Obj:
        return {"metadata": {"labels": {"gpupool.io/keep-idle": value}}}

    assert [keeps_idle({}, labelled(v)) for v in ("true", "yes", "", "false")] == [True] * 3 + [
        False
    ]


def test_who_only_warns_writes_nothing_to_workloads() -> None:
    found = chosen(deployment(), policy=IdlePolicy(4 * HOUR))
    assert found.change is None
    assert found.event.endswith("Nothing scales it to zero by itself.")


def test_what_another_object_controls_is_warned_and_never_scaled() -> None:
    owner = {"ownerReferences": [{"controller": True, "kind": "Notebook", "name": "n"}]}
    found = chosen(deployment(LONG_AGO, metadata={**owner, "annotations": {WARNED: LONG_AGO}}))
    assert (found.change, found.replicas) == (None, 0)
    assert "another object controls it" in found.event
