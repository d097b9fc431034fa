"""A disk that takes no more: writes are refused in words, nothing changes, nobody falls over."""

import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.faults.api_child import ApiChild, Nursery
from tests.faults.client import CONFIGMAPS, Client, connected
from tests.faults.whole_cluster import ask, wait_for

SOME = "x" * 50_000
WORDS = "the cluster's store could not be written ({}): nothing was changed; free some disk space"
_MIB = 1 << 20


def config_map(name: str) -> Obj:
    return {"metadata": {"name": name}, "data": {"some": SOME}}


async def fill(client: Client) -> tuple[list[Obj], str]:
    """Writes until one is refused: what was acknowledged, and what the refusal says."""
    made: list[Obj] = []
    for number in range(2000):
        answer = await client.call("POST", CONFIGMAPS, config_map(f"c{number:04}"))
        if answer.status != 201:
            assert answer.status == 500
            said = orjson.loads(answer.body)
            assert (said["kind"], said["reason"]) == ("Status", "InternalError")
            return made, said["message"]
        made.append(orjson.loads(answer.body))
    raise AssertionError("the disk never filled up")


async def items(client: Client) -> list[Obj]:
    found: list[Obj] = (await client.get(CONFIGMAPS))["items"]
    return [each for each in found if each["metadata"]["name"].startswith("c")]


async def refuses_and_recovers(child: ApiChild, make_room: Callable[[], None], why: str) -> None:
    async with connected(child) as client, connected(child) as watcher:
        start = (await client.get(CONFIGMAPS))["metadata"]["resourceVersion"]
        events = watcher.events(CONFIGMAPS, resourceVersion=start)
        made, said = await fill(client)
        assert WORDS.format(why) in said
        assert len(made) > 5
        await everything_is_refused_and_nothing_changes(client, made)
        make_room()
        answer = await client.call("POST", CONFIGMAPS, config_map("c-after"))
        assert answer.status == 201, answer.body
        made.insert(0, orjson.loads(answer.body))
        assert await items(client) == made
        heard = [(await anext(events))["object"] for _ in made]
        assert heard == [*made[1:], made[0]], "the watch went on through it all"
    child.kill()
    child.start()
    async with connected(child) as client:
        assert await items(client) == made


async def everything_is_refused_and_nothing_changes(client: Client, made: list[Obj]) -> None:
    path = f"{CONFIGMAPS}/c0000"
    big = {"data": {"some": SOME[:-1] + "y"}}
    for _ in range(30):
        assert (await client.call("POST", CONFIGMAPS, config_map("c-never"))).status == 500
        assert (await client.call("PUT", path, made[0] | big)).status == 500
        assert (await client.call("PATCH", path, big)).status == 500
    assert (await client.call("GET", f"{CONFIGMAPS}/c-never")).status == 404
    assert await items(client) == made


@pytest.fixture
def child(nursery: Nursery, tmp_path: Path) -> Iterator[ApiChild]:
    made = ApiChild(nursery, tmp_path / "data")
    made.start()
    yield made
    made.kill()
    made.check_log()


async def test_a_file_that_may_not_grow_refuses_writes_until_it_may(child: ApiChild) -> None:
    limits = resource.prlimit(child.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (2 * _MIB, limits[1]))

    def make_room() -> None:
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, limits)

    await refuses_and_recovers(child, make_room, "disk I/O error")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def test_a_full_disk_refuses_writes_until_there_is_room(
    nursery: Nursery, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3 * _MIB))
    child = ApiChild(nursery, small_disk / "data")
    child.log = small_disk.with_name("log")
    child.start()
    try:
        await refuses_and_recovers(child, ballast.unlink, "database or disk is full")
    finally:
        child.kill()
    child.check_log()


def test_a_whole_cluster_lives_through_a_full_disk(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    ballast = small_disk / "ballast"
    with Cluster(pools=[{"name": "a", "instanceType": "ecs.g6.large", "count": 2}]) as cluster:
        process = (cluster.directory / "lock").read_text()
        wait_for(lambda: len(ask(cluster, "GET", "/api/v1/nodes")[1]["items"]) == 2)
        fill_up(ballast)
        code, said = ask(cluster, "POST", CONFIGMAPS, config_map("c-never"))
        assert code == 500
        assert WORDS.format("database or disk is full") in said["message"]
        time.sleep(2)  # leases are renewed, statuses written, logs too: all in vain
        assert len(ask(cluster, "GET", "/api/v1/nodes")[1]["items"]) == 2
        ballast.unlink()
        assert ask(cluster, "POST", CONFIGMAPS, config_map("c-after"))[0] == 201
        assert (cluster.directory / "lock").read_text() == process
        assert "Traceback" not in cluster.log.read_text(errors="replace")


def fill_up(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                return
