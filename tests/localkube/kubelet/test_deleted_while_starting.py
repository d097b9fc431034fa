"""A pod that is deleted while files are made for it leaves none behind."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from kubeclient.resources import SECRETS
from localkube.kubelet import container_start
from localkube.kubelet.container_files import ContainerFiles, pod_directory
from localkube.kubelet.container_run import PodRuns
from localkube.kubelet.volumes import make_volumes
from tests.localkube.kubelet.world import World, settings, shell, world

PATIENCE_S = 20.0


async def until_gone(directory: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while os.path.exists(directory):  # noqa: ASYNC110, ASYNC240 - there is no event
            await asyncio.sleep(0.01)


def runs_of(here: World, uid: str) -> PodRuns:
    assert here.fleet._live is not None
    return here.fleet._live.processes.pods[uid]


async def until_clearing(here: World, runs: PodRuns) -> None:
    """Until the files of the deleted pod are deleted, or their deletion waits for its turn."""
    assert here.fleet._live is not None
    async with asyncio.timeout(PATIENCE_S):
        while any(here.fleet._live.keeper) or (  # noqa: ASYNC110 - there is no event
            any(task.get_name() == "pod-clear" for task in asyncio.all_tasks())
            and not runs.turn._waiters
        ):
            await asyncio.sleep(0.01)


async def test_a_start_that_is_cancelled_makes_no_more_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, done = threading.Event(), threading.Event(), threading.Event()
    real = ContainerFiles.make

    def slow(files: ContainerFiles) -> None:
        begun.set()
        go.wait(PATIENCE_S)
        real(files)
        done.set()

    monkeypatch.setattr(ContainerFiles, "make", slow)
    async with world(tmp_path) as here:
        made = await here.create(shell("p", "sleep 1000"))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        runs = runs_of(here, made["metadata"]["uid"])
        await here.delete("p", grace_s=0)
        await here.until_gone("p")
        await until_clearing(here, runs)
        go.set()
        await asyncio.to_thread(done.wait, PATIENCE_S)
        await until_gone(pod_directory(settings(tmp_path).directory, made["metadata"]["uid"]))


async def test_a_refresh_of_volumes_writes_nothing_after_the_pod_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, go = asyncio.Event(), asyncio.Event()
    finished = asyncio.Event()

    async def slow(*arguments: object) -> None:
        if held.is_set() or is_up:
            held.set()
            await go.wait()
        await make_volumes(*arguments)  # type: ignore[arg-type]
        if is_up:
            finished.set()

    is_up = False
    monkeypatch.setattr(container_start, "make_volumes", slow)
    async with world(tmp_path) as here:
        secret = {"metadata": {"name": "s", "namespace": "default"}, "data": {"k": "dg=="}}
        await here.kube.create(SECRETS, secret)
        volumes = [{"name": "v", "secret": {"secretName": "s"}}]
        made = await here.run(shell("p", "sleep 1000", volumes=volumes))
        is_up = True
        path = f"/api/v1/namespaces/default/pods/{made['metadata']['name']}"
        await here.kube.patch(path, {"metadata": {"labels": {"a": "b"}}})
        async with asyncio.timeout(PATIENCE_S):
            await held.wait()
        runs = runs_of(here, made["metadata"]["uid"])
        await here.delete("p", grace_s=0)
        await here.until_gone("p")
        await until_clearing(here, runs)
        directory = pod_directory(settings(tmp_path).directory, made["metadata"]["uid"])
        go.set()
        async with asyncio.timeout(PATIENCE_S):
            await finished.wait()
        await until_gone(directory)
