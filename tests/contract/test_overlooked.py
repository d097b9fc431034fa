"""Pods that no scheduler has looked at."""

import datetime

import pytest

from gpupool.contract.names import EXTENDER_PROFILE, SCHEDULER_NAME
from gpupool.contract.overlooked import PATIENCE_S, is_overlooked, is_unseen
from kubeclient.objects import Obj

BORN = datetime.datetime(2026, 11, 18, tzinfo=datetime.UTC)
LATER = BORN + datetime.timedelta(seconds=PATIENCE_S + 1)


def pod(name: str = EXTENDER_PROFILE, **status: object) -> Obj:
    return {
        "metadata": {"name": "p", "creationTimestamp": "2026-11-18T00:00:00Z"},
        "spec": {"schedulerName": name},
        "status": {"phase": "Pending", **status},
    }


def said(reason: str) -> list[Obj]:
    return [{"type": "PodScheduled", "status": "False", "reason": reason}]


@pytest.mark.parametrize("name", [EXTENDER_PROFILE, SCHEDULER_NAME])
def test_a_pod_of_ours_of_which_nobody_says_anything_is_overlooked_after_a_while(name: str) -> None:
    assert is_overlooked(pod(name), LATER)
    assert not is_overlooked(pod(name), BORN + datetime.timedelta(seconds=PATIENCE_S - 1))


def test_pods_of_other_schedulers_are_none_of_our_business() -> None:
    assert not is_overlooked(pod("default-scheduler"), LATER)


def test_a_scheduler_that_says_why_a_pod_waits_has_looked_at_it() -> None:
    assert not is_unseen(pod(conditions=said("Unschedulable")))
    assert is_unseen(pod(conditions=[{"type": "DisruptionTarget", "status": "True"}]))


def test_what_the_api_server_said_of_gates_does_not_count_when_they_are_gone() -> None:
    gated = pod(conditions=said("SchedulingGated"))
    assert is_unseen(gated)
    gated["spec"]["schedulingGates"] = [{"name": "queue"}]
    assert not is_unseen(gated)


def test_a_scheduler_that_has_a_node_in_mind_has_looked_at_it() -> None:
    """Since 1.35 kube-scheduler names it while it waits for the volumes of the pod."""
    assert not is_unseen(pod(nominatedNodeName="n0"))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_wants_no_node(phase: str) -> None:
    assert not is_unseen(pod(phase=phase))


def test_a_pod_that_is_being_deleted_wants_no_node() -> None:
    going = pod()
    going["metadata"]["deletionTimestamp"] = "2026-11-18T00:00:00Z"
    assert not is_unseen(going)
