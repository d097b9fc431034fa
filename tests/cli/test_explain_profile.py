"""`gpupool explain` says that kube-scheduler does not look at a pod that is for our profile."""

import datetime

from gpupool.cli.explain import words_of_profile
from gpupool.contract.names import EXTENDER_PROFILE, SCHEDULER_NAME
from kubeclient.objects import Obj

NOW = datetime.datetime(2026, 11, 18, 12, tzinfo=datetime.UTC)


def pod(name: str, **status: object) -> Obj:
    created = "2026-11-18T11:00:00Z"
    spec = {"schedulerName": name}
    return {"metadata": {"creationTimestamp": created}, "spec": spec, "status": status}


def test_a_pod_of_the_profile_that_nobody_looks_at_gets_the_command_that_helps() -> None:
    (words,) = words_of_profile(pod(EXTENDER_PROFILE), NOW)
    assert "has not looked at this pod" in words
    assert "gpupool scheduler config" in words


def test_a_pod_that_was_looked_at_or_is_for_another_scheduler_gets_no_such_words() -> None:
    said = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    assert words_of_profile(pod(EXTENDER_PROFILE, conditions=said), NOW) == ()
    assert words_of_profile(pod(SCHEDULER_NAME), NOW) == ()
