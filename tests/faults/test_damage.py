"""Whatever happens to the files of a cluster: it starts, or says in a line what to do."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpupool.local.home import Home
from gpupool.local.server_process import stop_server
from gpupool.testing import Cluster
from gpupool.testing.server import ClusterFailed
from tests.faults.api_child import ApiChild, Nursery, Refused
from tests.faults.client import CONFIGMAPS, connected
from tests.faults.whole_cluster import ask, wait_for

Damage = Callable[[Path], object]

DAMAGES: dict[str, Damage] = {
    "garbled": lambda path: path.write_bytes(os.urandom(5000)),
    "emptied": lambda path: path.write_bytes(b""),
    "a directory": lambda path: make_directory(path),
    "deleted": lambda path: path.unlink(),
    "open to others": lambda path: path.chmod(0o666),
    "a dead link": lambda path: make_dead_link(path),
}
SMALL = """
apiVersion: gpupool.io/v1alpha1
kind: Cluster
pools: [{name: a, instanceType: ecs.g6.large}]
"""
FILES = (
    "store.db",
    "store.db-wal",
    "cluster.yaml",
    "state.json",
    "lock",
    "audit.log",
    "kubeconfig",
    "admin-token.sha256",
    "ca.crt",
    "ca.key",
    "server.crt",
    "server.key",
    "sa.key",
    "certificates.json",
    "server.log",
    ".gpupool",
)


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_dead_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def gpupool(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpupool", *arguments],
        env=os.environ | {"GPUPOOL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def kill_server(home: Path) -> None:
    for cluster in Home(home).clusters():
        with contextlib.suppress(OSError):  # the lock itself may be the damaged file
            stop_server(cluster, patience_s=0)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a cluster that was killed."""
    home = tmp_path_factory.mktemp("home")
    config = tmp_path_factory.mktemp("config") / "small.yaml"
    config.write_text(SMALL, encoding="utf-8")
    started = gpupool(home, "up", "--port", "0", "--config", str(config))
    assert started.returncode == 0, started.stderr
    kill_server(home)
    return home


def sockets(folder: str, names: list[str]) -> set[str]:
    """Of kubelets and device plugins; they are made anew, and nobody can copy them."""
    return {name for name in names if Path(folder, name).is_socket()}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_mended_or_explained(
    killed: Path, tmp_path: Path, name: str, damage: str
) -> None:
    home = tmp_path / "home"
    shutil.copytree(killed, home, symlinks=True, ignore=sockets)
    path = home / "clusters" / "default" / name
    assert path.exists()
    DAMAGES[damage](path)
    try:
        up = gpupool(home, "up")
        log = path.parent / "server.log"
        said = up.stdout + up.stderr + (log.read_text(errors="replace") if log.is_file() else "")
        assert "Traceback" not in said
        assert up.returncode == 0 or "Error: " in up.stderr
        for command in ("status", "clusters", "down"):
            done = gpupool(home, command)
            assert "Traceback" not in done.stderr
    finally:
        kill_server(home)


STORES: dict[str, tuple[Damage, str]] = {
    "garbled": (lambda store: garble(store, 20_000), "delete the cluster"),
    "cut short": (lambda store: os.truncate(store, 10_000), "delete the cluster"),
    "emptied": (lambda store: store.write_bytes(b""), "found: an empty file"),
    "a directory": (lambda store: make_directory(store), "Is a directory.*owner"),
    "missing beside its log": (lambda store: store.unlink(), "no such file, but store.db-wal"),
    "a garbled log": (lambda store: garble(log_of(store), 9000), "store.db-wal.*garbled"),
}


def log_of(store: Path) -> Path:
    return store.with_name("store.db-wal")


def garble(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place : place + 64] = os.urandom(64)
    path.write_bytes(raw)


def snapshot(directory: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in directory.glob("store.db*") if each.is_file()}


@pytest.mark.parametrize("what", STORES)
async def test_a_damaged_store_is_refused_and_left_as_it_is(
    nursery: Nursery, tmp_path: Path, what: str
) -> None:
    child = ApiChild(nursery, tmp_path / "data")
    child.start()
    async with connected(child) as client:
        for number in range(30):
            body = {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * 1000}}
            assert (await client.call("POST", CONFIGMAPS, body)).status == 201
    # Most of it in the file, the rest in the log.
    child.end(signal.SIGTERM)
    child.start()
    async with connected(child) as client:
        for number in range(10):
            assert (await client.call("DELETE", f"{CONFIGMAPS}/c{number}")).status == 200
    child.kill()
    damage, words = STORES[what]
    damage(child.directory / "store.db")
    before = snapshot(child.directory)
    with pytest.raises(Refused, match=words):
        child.start()
    assert snapshot(child.directory) == before
    child.check_log()


def test_a_cluster_whose_store_was_deleted_does_not_start_with_an_empty_one() -> None:
    with Cluster(pools=[{"name": "a", "instanceType": "ecs.g6.large", "count": 1}]) as cluster:
        cluster.stop()
        (cluster.directory / "store.db").unlink()
        with pytest.raises(ClusterFailed, match=r"no such file, but store\.db-head"):
            cluster.start()
        (cluster.directory / "store.db-head").unlink()
        cluster.start()
        wait_for(lambda: len(ask(cluster, "GET", "/api/v1/nodes")[1]["items"]) == 1)
