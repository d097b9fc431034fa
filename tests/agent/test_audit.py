"""Pods that hold more of a card than their share are reported, or also evicted."""

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator

import pytest

from gpupool.agent.audit import (
    LASTING_S,
    TOLERATED_MIB,
    Lasting,
    Overuse,
    overuses,
)
from gpupool.agent.auditor import REASON, Auditor
from gpupool.agent.light_pods import LightPods
from gpupool.agent.metrics import Metrics
from gpupool.agent.pod_reports import PodReports
from gpupool.agent.shares import Shares
from gpupool.core.gpu import Isolation
from gpupool.hardware.driver import NotAnswering, ProgramUse, Uses
from gpupool.hardware.simulated import SimulatedDriver
from kubeclient.errors import NotFound
from kubeclient.events import Recorder
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.agent.nodes import NAME, V100, Node
from tests.agent.test_shrinks import pod

SHARE_MIB = 1024
ALLOWED_MIB = SHARE_MIB + TOLERATED_MIB + 51
OVER = Overuse("u", "GPU-a", 0, ALLOWED_MIB + 1, SHARE_MIB)


def by_pid(pid: int) -> str:
    return {1: "u", 2: "container", 3: "v"}.get(pid, "")


def test_all_processes_of_a_pod_count_together_and_a_little_more_is_tolerated() -> None:
    shared = pod()
    shared["status"] = {"containerStatuses": [{"containerID": "gpupool://container"}]}
    uses = [ProgramUse(1, "GPU-a", ALLOWED_MIB - 500), ProgramUse(2, "GPU-a", 500)]
    assert overuses([shared], uses, by_pid) == []
    assert overuses([shared], [*uses, ProgramUse(2, "GPU-a", 1)], by_pid) == [OVER]


def test_a_card_without_a_share_counts_and_processes_of_no_pod_do_not() -> None:
    uses = [ProgramUse(1, "GPU-b", 5000), ProgramUse(3, "GPU-a", 5000), ProgramUse(9, "GPU-a", 9)]
    (found,) = overuses([pod()], uses, by_pid)
    assert found.words == "its programs hold 5000 MiB of card GPU-b, its share is 0 MiB"


def test_only_lasting_overuse_counts() -> None:
    lasting = Lasting()
    assert lasting.of([OVER], {"GPU-a"}, {"u"}, 0) == []
    assert lasting.of([], {"GPU-a"}, {"u"}, 5) == []
    assert lasting.of([OVER], {"GPU-a"}, {"u"}, 6) == []
    assert lasting.of([OVER], {"GPU-a"}, {"u"}, 5 + LASTING_S) == []
    assert lasting.of([OVER], {"GPU-a"}, {"u"}, 6 + LASTING_S) == [OVER]


def test_failed_readings_of_a_card_do_not_restart_the_clock() -> None:
    lasting = Lasting()
    for second in range(0, 10, 2):
        assert lasting.of([OVER] if second % 4 == 0 else [], {"GPU-b"}, {"u"}, second) == []
    assert lasting.of([OVER], {"GPU-a", "GPU-b"}, {"u"}, LASTING_S) == [OVER]


def test_overuse_seen_in_one_or_two_readings_is_not_reported_however_long_ago_it_began() -> None:
    lasting = Lasting()
    lasting.of([OVER], {"GPU-a"}, {"u"}, 0)
    assert lasting.of([OVER], {"GPU-a"}, {"u"}, 100 * LASTING_S) == []


def test_what_a_pod_that_has_gone_held_is_forgotten() -> None:
    lasting = Lasting()
    lasting.of([OVER], {"GPU-a"}, {"u"}, 0)
    assert ("u", "GPU-a") in lasting
    lasting.of([], set(), set(), 1)
    assert ("u", "GPU-a") not in lasting


class Greedy(SimulatedDriver):
    """Every second reading fails, as on a node that is so busy that looks take long."""

    times = 0

    async def uses(self) -> Uses:
        self.times += 1
        if self.times % 2:
            raise NotAnswering("busy")
        return Uses((ProgramUse(1, "GPU-a", 9999),), frozenset({"GPU-a"}))


@contextlib.asynccontextmanager
async def auditing(
    node: Node, monkeypatch: pytest.MonkeyPatch, **changes: object
) -> AsyncIterator[Metrics]:
    """An auditor that sees the pod `p` exceed its share."""
    monkeypatch.setattr("gpupool.agent.audit.LASTING_S", 0.0)
    await node.create()
    node.insert([V100])
    made = await node.kube.create(PODS, pod(uid="", isolation=Isolation.NONE))
    uid = made["metadata"]["uid"]
    settings = node.settings(audit_s=0.01, owner=lambda pid: uid, **changes)
    seen: Obj = await node.get()
    metrics, kube = Metrics(NAME), node.agent_kube
    shares = Shares(kube, NAME, settings.volumes, lambda: seen)
    recorder = Recorder(kube, "gpupool-agent", lambda: datetime.datetime.now(datetime.UTC))
    reports = PodReports(kube, NAME, recorder, lambda: seen)
    auditor = Auditor(settings, Greedy(node.files.state), reports)
    work = (shares.pods.run(), recorder.run(), auditor.run(LightPods(shares.pods), metrics))
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield metrics
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_overuse_is_an_event_of_the_pod_and_of_the_node_and_a_metric(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with auditing(node, monkeypatch) as metrics:
        words = "its programs hold 9999 MiB of card 0 (GPU-a), its share is 1024 MiB"

        async def are_said() -> bool:
            said = {text for reason, text in await node.events() if reason == REASON}
            return said == {words, f"default/p: {words}"}

        await node.wait(are_said)
        line = 'namespace="default",node="node-1",pod="p",uuid="GPU-a"} 9999.0'
        await node.wait(lambda: line in metrics.text())
        assert 'gpupool_overuses_total{node="node-1"} 1.0' in metrics.text()
        await node.kube.get(PODS, "p", "default")  # left alone


async def test_overuse_leads_to_an_eviction_if_the_settings_say_so(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with auditing(node, monkeypatch, evicts=True):

        async def is_gone() -> bool:
            try:
                found = await node.kube.get(PODS, "p", "default")
            except NotFound:
                return True
            return "deletionTimestamp" in found["metadata"]

        await node.wait(is_gone)
