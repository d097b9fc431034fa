"""Pods that exceed their limits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from localkube.kubelet.limits import NO_LIMITS, pod_limits, storage_complaint
from tests.localkube.kubelet.world import (
    World,
    condition,
    container,
    is_ready,
    phase_is,
    settings,
    shell,
    world,
)

EAT = "python3 -c 'b = bytearray(80 << 20); import time; time.sleep(100)'"
FILL = "head -c 3000000 /dev/urandom > {}/file; sleep 100"


@asynccontextmanager
async def watchful(directory: Path, *, isolate: bool = True) -> AsyncIterator[World]:
    changed = replace(settings(directory), usage_s=0.05, isolate=isolate)
    async with world(directory, changed) as made:
        yield made


def limited(script: str, limits: Obj, **spec: object) -> Obj:
    resources = {"limits": limits, "requests": dict.fromkeys(limits, "0")}
    return shell("p", script, container={"resources": resources}, **spec)


async def test_a_container_past_its_memory_is_killed_and_started_again(tmp_path: Path) -> None:
    async with watchful(tmp_path) as cluster:
        found = await cluster.run(
            limited(EAT, {"memory": "40Mi"}), lambda p: container(p).get("restartCount", 0) > 0
        )
        ended = container(found)["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize(
    "script",
    [f"setsid -w {EAT}", f"(setsid {EAT} &); sleep 1000"],
    ids=["its own session", "an orphan"],
)
async def test_a_memory_limit_holds_for_every_process_of_the_container(
    tmp_path: Path, script: str, isolate: bool
) -> None:
    async with watchful(tmp_path, isolate=isolate) as cluster:
        found = await cluster.run(
            limited(script, {"memory": "40Mi"}), lambda p: container(p).get("restartCount", 0) > 0
        )
        ended = container(found)["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def test_a_memory_limit_holds_for_programs_of_exec(tmp_path: Path) -> None:
    async with watchful(tmp_path) as cluster:
        found = await cluster.run(limited("sleep 1000", {"memory": "40Mi"}))
        process = await cluster.exec(found, "sh", "-c", EAT)
        await cluster.until("p", lambda p: container(p).get("restartCount", 0) > 0)
        assert await process.wait() == 137
        await process.hang_up()


async def test_a_container_within_its_memory_limit_keeps_running(tmp_path: Path) -> None:
    async with watchful(tmp_path) as cluster:
        found = await cluster.run(limited("sleep 100", {"memory": "40Mi"}))
        await cluster.output(found, "sleep 0.5")
        found = await cluster.until("p", is_ready)
        assert container(found)["restartCount"] == 0


@pytest.mark.parametrize(
    ("limits", "volume", "words"),
    [
        (
            {"ephemeral-storage": "1Mi"},
            {"emptyDir": {}},
            'Container c exceeded its local ephemeral storage limit "1Mi". ',
        ),
        (
            {},
            {"emptyDir": {"sizeLimit": "1Mi"}},
            'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
        ),
    ],
)
async def test_a_pod_past_its_storage_is_evicted(
    tmp_path: Path, limits: Obj, volume: Obj, words: str
) -> None:
    where = "${TMPDIR:-/tmp}" if limits else "$LOCALKUBE_ROOT/v"
    given = limited(FILL.format(where), limits, volumes=[{"name": "v", **volume}])
    given["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    async with watchful(tmp_path) as cluster:
        found = await cluster.run(given, phase_is("Failed"))
        assert (found["status"]["reason"], found["status"]["message"]) == ("Evicted", words)
        disrupted = condition(found, "DisruptionTarget")
        assert (disrupted["status"], disrupted["reason"]) == ("True", "TerminationByKubelet")
        event = await cluster.until_event("Evicted", "p")
        assert (event["type"], event["message"]) == ("Warning", words)


def test_a_pod_without_limits_is_never_looked_at() -> None:
    assert not pod_limits(shell("p", "true"))
    assert storage_complaint(NO_LIMITS, {"c": 10**12}, {}) is None


def test_volumes_count_towards_the_containers_limits() -> None:
    limits = pod_limits(limited("true", {"ephemeral-storage": "10"}))
    assert storage_complaint(limits, {"c": 6}, {"v": 4}) is None
    complaint = storage_complaint(limits, {"c": 6}, {"v": 5})
    assert complaint == (
        "Pod ephemeral local storage usage exceeds the total limit of containers 10. "
    )
