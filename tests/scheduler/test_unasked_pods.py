"""Pods for our profile of kube-scheduler, about which it does not ask."""

import asyncio
import logging
from pathlib import Path

import pytest

from gpupool.contract.names import EXTENDER_PROFILE
from gpupool.contract.overlooked import PATIENCE_S
from gpupool.scheduler import extender_program, unasked_pods
from gpupool.scheduler.unasked_pods import NOT_ASKED, UnaskedPods
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS, PODS
from tests.scheduler.test_extender import extender
from tests.scheduler.test_extender_verbs import Verbs
from tests.scheduler.world import gpu_pod, world


class Watched:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.unasked = UnaskedPods(lambda: self.now_s)

    def see(self, *pods: Obj) -> None:
        for each in pods:
            self.unasked.pod_changed(None, each)

    def told(self, after_s: float = PATIENCE_S) -> list[str]:
        self.now_s += after_s
        return [each["metadata"]["name"] for each in self.unasked.take()]


def pod(name: str = "p", *, units: int = 1, scheduler: str = EXTENDER_PROFILE) -> Obj:
    made = gpu_pod(name, units=units, schedulerName=scheduler)
    made["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    return made


def test_a_pod_about_which_nobody_asks_is_told_once() -> None:
    watched = Watched()
    watched.see(pod())
    assert watched.told(PATIENCE_S - 1) == []
    assert watched.told(1) == ["p"]
    watched.see(pod())  # it changes, and nobody has said anything of it
    assert watched.told() == []


def test_an_event_finds_the_fields_that_it_needs() -> None:
    watched = Watched()
    watched.see(pod())
    watched.now_s = PATIENCE_S
    (about,) = watched.unasked.take()
    assert (about["kind"], about["metadata"]["uid"]) == ("Pod", "uid-p")
    assert about["metadata"]["namespace"] == "default"


def test_a_pod_in_a_long_queue_is_not_told() -> None:
    """kube-scheduler asks about others meanwhile."""
    watched = Watched()
    watched.see(pod("first"), pod("last"))
    watched.now_s = PATIENCE_S
    watched.unasked.asked(pod("first"))
    assert watched.told(0) == []
    assert watched.told(PATIENCE_S - 1) == []
    assert watched.told(1) == ["last"]


def test_a_pod_that_was_asked_about_and_changes_later_is_not_told() -> None:
    """kube-scheduler waits for its volume, say, and somebody writes a label."""
    watched = Watched()
    watched.see(pod())
    watched.unasked.asked(pod())
    watched.see(pod())
    assert watched.told(10 * PATIENCE_S) == []


def test_a_question_about_a_pod_that_we_hear_of_later_counts() -> None:
    """kube-scheduler has a watch of its own, which may be ahead of ours."""
    watched = Watched()
    watched.unasked.asked(pod())
    watched.see(pod())
    assert watched.told(10 * PATIENCE_S) == []


def test_questions_about_pods_that_never_come_are_forgotten() -> None:
    watched = Watched()
    for number in range(2000):
        watched.unasked.asked(pod(f"p{number}"))
    watched.see(pod("p0"), pod("p1999"))
    assert watched.told() == ["p0"]


def test_a_question_to_the_extender_counts() -> None:
    verbs = Verbs()
    asked = verbs.offer("p", 1)
    asked.pod["spec"]["schedulerName"] = EXTENDER_PROFILE
    verbs.extender.pod_changed(None, asked.pod)
    verbs.now_s += PATIENCE_S
    verbs.extender.filter(asked)
    assert verbs.extender.unasked.take() == []


def test_questions_about_pods_of_another_profile_say_nothing_about_ours() -> None:
    watched = Watched()
    watched.see(pod())
    watched.now_s = PATIENCE_S
    watched.unasked.asked(pod("other", scheduler="default-scheduler"))
    assert watched.told(0) == ["p"]


def test_only_pods_that_kube_scheduler_would_ask_about_are_told() -> None:
    watched = Watched()
    watched.see(pod("of-another", scheduler="default-scheduler"), pod("without-gpus", units=0))
    assert watched.told() == []


def test_a_pod_that_kube_scheduler_has_refused_itself_is_not_told() -> None:
    watched, refused = Watched(), pod()
    watched.see(refused)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    watched.see({**refused, "status": {"conditions": [condition]}})
    assert watched.told() == []


def test_a_pod_that_is_gone_is_not_told() -> None:
    watched = Watched()
    watched.see(pod("deleted"), pod("replaced"))
    watched.unasked.pod_changed(pod("deleted"), None)
    new = pod("replaced")
    new["metadata"]["uid"] = "another"
    watched.unasked.pod_changed(pod("replaced"), new)
    assert watched.told(PATIENCE_S - 1) == []
    assert watched.told(1) == ["replaced"]
    assert watched.told() == []


def test_many_pods_are_told_in_portions() -> None:
    watched = Watched()
    watched.see(*(pod(f"p{number}") for number in range(150)))
    assert [len(watched.told()), len(watched.told()), len(watched.told())] == [100, 50, 0]


async def test_the_extender_writes_an_event_and_a_line_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(extender_program, "_LOOK_S", 0.01)
    monkeypatch.setattr(unasked_pods, "PATIENCE_S", 0.1)
    caplog.set_level(logging.WARNING)
    async with world(tmp_path) as kube, extender(kube):
        await kube.create(PODS, gpu_pod("p", units=1, schedulerName=EXTENDER_PROFILE))
        async with asyncio.timeout(60):
            while not (events := (await kube.list(EVENTS)).items):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    (event,) = events
    assert (event["reason"], event["involvedObject"]["name"]) == (NOT_ASKED, "p")
    assert "`gpupool scheduler config` prints a configuration with it" in event["message"]
    assert "kube-scheduler does not ask about pods" in caplog.messages
