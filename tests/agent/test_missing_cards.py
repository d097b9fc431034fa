"""Containers that run without the card that they were promised are found from the node."""

import asyncio
import contextlib
import datetime
import os
import subprocess
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from gpupool.agent import way_facts
from gpupool.agent.card_watch import REASON, CardWatch
from gpupool.agent.light_pods import LightPods, light
from gpupool.agent.metrics import Metrics
from gpupool.agent.missing_cards import (
    Started,
    has_driver,
    pids_of_containers,
    pids_of_node,
    started,
    verdict,
)
from gpupool.agent.pod_reports import PodReports
from gpupool.agent.way_facts import OwnDriver
from gpupool.core.gpu import Isolation
from gpupool.core.ways import Way, Ways
from kubeclient.errors import NotFound
from kubeclient.events import Recorder
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from tests.agent.nodes import NAME, Node
from tests.agent.test_shrinks import pod

ID = "a" * 64
BY_CLASS = Ways(Way.RUNTIME_CLASS, runtime_class="nvidia")
PLAIN = "/ /proc /dev /etc/hosts /etc/gpupool /usr/local/gpupool /home/nvidia-smi.txt"


def mounts(places: str) -> str:
    return "".join(f"1 0 0:9 / {place} ro - ext4 /dev/sda rw\n" for place in places.split())


WITH_CARD = mounts(f"{PLAIN} /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.10")
WITHOUT = mounts(PLAIN)


def running(
    isolation: Isolation = Isolation.WHOLE, *, state: str = "running", runtime_class: str = ""
) -> Obj:
    made = pod(isolation=isolation)
    made["status"] = {
        "containerStatuses": [
            {"name": "c", "containerID": f"containerd://{ID}", "state": {state: {}}},
            {"name": "plain", "containerID": "containerd://b", "state": {"running": {}}},
        ]
    }
    if runtime_class:
        made["spec"]["runtimeClassName"] = runtime_class
    return made


@pytest.mark.parametrize(
    "place",
    [
        "/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.10",
        "/usr/lib64/libnvidia-ml.so.1",
        "/usr/lib/wsl/drivers/nv_dispi.inf_amd64/libnvidia-ptxjitcompiler.so.1",
        "/usr/bin/nvidia-smi",
        "/dev/nvidia0",
        "/dev/dxg",
        "/usr/local/nvidia",
        "/usr/local/nvidia/lib64",
    ],
)
def test_files_of_the_driver_are_known_by_their_place(place: str) -> None:
    assert has_driver(mounts(f"{PLAIN} {place}"))


@pytest.mark.parametrize("text", ["", "nonsense\n1 2\n", WITHOUT, mounts("/usr/local/nvidia-docs")])
def test_other_mounts_are_no_driver(text: str) -> None:
    assert not has_driver(text)


def test_one_process_with_the_driver_is_enough() -> None:
    """Sandboxes inside of a container have mounts of their own."""
    by_pid = {1: WITHOUT, 2: WITH_CARD, 3: ""}
    assert verdict([1, 2], by_pid.__getitem__) is True
    assert verdict([1, 3], by_pid.__getitem__) is False
    assert verdict([3], by_pid.__getitem__) is None
    assert verdict([], by_pid.__getitem__) is None


def test_nobody_is_accused_of_whose_mounts_only_some_were_read() -> None:
    """A volume with the root of a busy node in it: the driver may be behind the end."""
    by_pid = {1: WITHOUT, 2: mounts("/host/x ") * 40_000 + WITH_CARD}
    assert verdict([1, 2], by_pid.__getitem__) is None


def test_no_more_processes_are_read_than_are_needed() -> None:
    """A program may have thousands of them, and the agent has other things to do."""
    read: list[int] = []

    def mountinfo(pid: int) -> str:
        read.append(pid)
        return mounts("/usr/lib/libcuda.so.1" if pid == 2 else PLAIN)

    assert verdict(range(1, 5_000), mountinfo) is True
    assert read == [1, 2]


@pytest.mark.parametrize("way", list(Way))
def test_only_containers_whose_cards_others_put_in_are_looked_at(way: Way) -> None:
    others = way in (Way.RUNTIME, Way.RUNTIME_CLASS, Way.NVIDIA_NRI)
    found = list(started([running()], Ways(way)))
    assert found == ([Started("u", "c", ID)] if others else [])


def test_a_container_that_does_not_run_yet_is_not_looked_at() -> None:
    """The runtime may be at work on its mounts."""
    for state in ("waiting", "terminated"):
        assert not list(started([running(state=state)], BY_CLASS))
    assert not list(started([pod(), pod() | {"status": {}}], BY_CLASS))


def test_pods_of_another_runtime_class_are_not_looked_at() -> None:
    assert not list(started([running(runtime_class="gvisor")], BY_CLASS))
    assert len(list(started([running(runtime_class="nvidia")], BY_CLASS))) == 1


@pytest.mark.parametrize(
    ("created", "is_looked_at"),
    [
        ("2026-11-17T10:00:00Z", False),
        ("2026-11-17T10:00:01Z", True),
        ("2026-11-17T10:00:02Z", True),
        ("", False),
    ],
)
def test_pods_from_before_the_present_way_are_not_looked_at(
    created: str, is_looked_at: bool
) -> None:
    """They got their cards by `mounts`, say, which shows files of the driver at any place."""
    pod = running()
    if created:
        pod["metadata"]["creationTimestamp"] = created
    ways = replace(BY_CLASS, since="2026-11-17T10:00:01Z")
    assert bool(list(started([light(pod)], ways))) is is_looked_at


def test_the_processes_of_a_container_are_found_on_this_machine() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    try:
        find = pids_of_containers(lambda pid: ID if pid == child.pid else "")
        assert find([ID]) == {ID: [child.pid]}
        assert find(["b"]) == {}
    finally:
        child.kill()
        child.wait()


def test_an_agent_with_processes_of_its_own_looks_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without hostPID it is the first process that it sees."""
    assert pids_of_node(lambda pid: "") is not None
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert pids_of_node(lambda pid: "") is None


# -- the watch ---------------------------------------------------------------------------------


class Watching(NamedTuple):
    watch: CardWatch
    metrics: Metrics
    asked: list[set[str]]  # which containers were looked for


@contextlib.asynccontextmanager
async def watching(
    node: Node, pids: Mapping[str, list[int]], text: str, **changes: object
) -> AsyncIterator[Watching]:
    await node.create()
    asked: list[set[str]] = []

    def find(ids: Collection[str]) -> Mapping[str, list[int]]:
        asked.append(set(ids))
        return pids

    settings = node.settings(pids=find, mountinfo=lambda _: text, **changes)
    seen, kube = await node.get(), node.agent_kube
    recorder = Recorder(kube, "gpupool-agent", lambda: datetime.datetime.now(datetime.UTC))
    reports = PodReports(kube, NAME, recorder, lambda: seen)
    writing = asyncio.create_task(recorder.run())
    try:
        yield Watching(CardWatch(settings, reports, lambda: BY_CLASS), Metrics(NAME), asked)
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_a_pod_without_cards_cannot_raise_an_alarm_of_the_node(node: Node) -> None:
    """It writes into its environment that it was promised one. An object has few events."""
    plain = running()
    plain["metadata"]["annotations"] = {}
    said: list[Obj] = []
    async with watching(node, {}, WITHOUT) as (watch, metrics, _):
        watch._reports.warn = lambda pod, reason, words: said.append(pod)  # type: ignore[method-assign]
        watch.refused([plain], metrics, "u", "no card")
        assert (said, metrics.starts_refused) == ([], 0)
        watch.refused([running()], metrics, "u", "no card")
        watch.refused([], metrics, "u", "no card")  # not heard of yet
        assert (said, metrics.starts_refused) == ([running()], 2)


async def test_a_container_without_its_card_is_one_event_with_node_and_way_and_a_metric(
    node: Node,
) -> None:
    async with watching(node, {ID: [7]}, WITHOUT) as (watch, metrics, asked):
        for _ in range(3):
            await watch.look([running()], metrics)
        words = (
            "container c runs without the card that it was promised: none of its processes has a "
            f"file of the driver. Node {NAME}, way runtime-class=nvidia. "
            "`gpupool doctor --canary` checks the node"
        )

        async def are_said() -> bool:
            return sorted(await node.events()) == [(REASON, words), (REASON, f"default/p: {words}")]

        await node.wait(are_said)
        labels = f'container="c",namespace="default",node="{NAME}",pod="p"'
        line = f"gpupool_container_without_card{{{labels}}} 1.0"
        assert line in metrics.text()
        assert asked == [{ID}]  # once, however long it runs
        await watch.look([], metrics)
        assert line not in metrics.text()


async def test_a_container_with_its_card_is_looked_at_once(node: Node) -> None:
    async with watching(node, {ID: [7]}, WITH_CARD) as (watch, metrics, asked):
        for _ in range(3):
            await watch.look([running()], metrics)
        assert (asked, metrics.without_card) == ([{ID}], set())


async def test_nobody_is_accused_whose_processes_are_not_found_and_the_search_ends(
    node: Node,
) -> None:
    async with watching(node, {}, WITHOUT) as (watch, metrics, asked):
        for _ in range(30):
            await watch.look([running()], metrics)
        assert metrics.without_card == set()
        assert 1 < len(asked) < 20


async def test_a_pod_without_its_card_is_evicted_if_the_settings_say_so(node: Node) -> None:
    async with watching(node, {ID: [7]}, WITHOUT, evicts=True) as (watch, metrics, _):
        made = await node.kube.create(PODS, pod(uid="", isolation=Isolation.WHOLE))
        await watch.look([{**made, "status": running()["status"]}], metrics)
        with contextlib.suppress(NotFound):
            found = await node.kube.get(PODS, "p", "default")
            assert "deletionTimestamp" in found["metadata"]


async def test_where_the_agent_itself_shows_no_file_of_its_driver_nobody_is_looked_at(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_facts, "_CONTROL_DEVICES", (tmp_path,))
    own = OwnDriver(Way.RUNTIME)
    async with watching(node, {}, WITHOUT, own_driver=own, audit_s=0.0) as (watch, metrics, asked):
        pods = Mirror(node.agent_kube, PODS)
        hearing = asyncio.create_task(pods.run())
        async with asyncio.timeout(20):
            await watch.run(LightPods(pods), metrics)
        hearing.cancel()
        assert asked == []


async def test_pods_that_do_not_change_are_not_read_again(node: Node) -> None:
    async with watching(node, {ID: [7]}, WITHOUT, audit_s=0.0) as (watch, metrics, asked):
        mirror = Mirror(node.agent_kube, PODS)
        pods = CountingPods(mirror)
        tasks = [asyncio.create_task(mirror.run()), asyncio.create_task(watch.run(pods, metrics))]
        try:
            await pods.wait_synced()
            await turns(20)
            before = pods.reads
            await turns(20)
            assert pods.reads == before > 0
            made = await node.kube.create(PODS, pod(uid="", isolation=Isolation.WHOLE))
            await node.wait(lambda: pods.reads > before)
            await node.kube.update_status(PODS, {**made, "status": running()["status"]})
            await node.wait(lambda: asked == [{ID}])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class CountingPods(LightPods):
    reads = 0

    def __iter__(self) -> Iterator[Obj]:
        self.reads += 1
        return super().__iter__()
