"""However a server ends: no process of a container outlives it, and no file lies about."""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.faults.whole_cluster import ask, wait_for

PODS = "/api/v1/namespaces/default/pods"
POOL = {"name": "a", "instanceType": "ecs.g6.large", "count": 1}
# Deaf to everything that can be ignored, and as far from their parents as processes can go.
SCRIPTS = {
    "plain": "sleep {0}",
    "deaf": "trap '' TERM HUP INT QUIT; while :; do sleep {0}; done",
    "away": "trap '' TERM HUP; (setsid setsid sh -c 'sleep {0}' </dev/null >/dev/null 2>&1 &); "
    "sleep {0}",
    "many": "for each in 1 2 3 4 5; do sleep {0} & done; wait",
}


def pod(name: str, script: str) -> Obj:
    command = ["sh", "-c", script]
    container = {"name": "main", "image": "busybox", "command": command}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"metadata": {"name": name}, "spec": spec}


def processes(mark: str) -> list[int]:
    """Whose command line has the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has just ended
            if mark.encode() in line:
                found.append(int(entry.name))
    return found


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Empty directories wherever a program may think of leaving something."""
    made = {}
    for variable in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        made[variable] = tmp_path / variable
        made[variable].mkdir(mode=0o700)
        monkeypatch.setenv(variable, str(made[variable]))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(home))
    made["home"] = home
    return made


@pytest.fixture
def mark() -> str:
    return str(random.SystemRandom().randrange(10**9, 10**10))


@pytest.fixture
def cluster(places: dict[str, Path], mark: str) -> Iterator[Cluster]:
    shared = set(os.listdir("/dev/shm"))
    with Cluster(pools=[POOL]) as made:
        for name, script in SCRIPTS.items():
            assert ask(made, "POST", PODS, pod(name, script.format(mark)))[0] == 201
        wait_for(lambda: len(running(made)) == len(SCRIPTS))
        wait_for(lambda: len(processes(mark)) >= len(SCRIPTS) + 6)
        yield made
    assert processes(mark) == []
    assert {
        name: list(path.iterdir()) for name, path in places.items() if any(path.iterdir())
    } == {}
    assert set(os.listdir("/dev/shm")) <= shared


def running(cluster: Cluster) -> list[str]:
    items = ask(cluster, "GET", PODS)[1]["items"]
    return [p["metadata"]["name"] for p in items if p.get("status", {}).get("phase") == "Running"]


def server_process(cluster: Cluster) -> int:
    return int((cluster.directory / "lock").read_text())


def launchers(cluster: Cluster) -> list[int]:
    """The children of the server."""
    server = server_process(cluster)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if parent == str(server):
                found.append(int(entry.name))
    return found


def test_no_process_outlives_its_server(cluster: Cluster, mark: str) -> None:
    cluster.kill()
    wait_for(lambda: not processes(mark))
    cluster.start()
    wait_for(lambda: len(processes(mark)) >= len(SCRIPTS) + 6)
    cluster.stop()
    assert processes(mark) == []


@pytest.mark.slow
def test_what_outlives_even_the_launcher_ends_at_the_next_start(
    cluster: Cluster, mark: str
) -> None:
    before, victims = processes(mark), launchers(cluster)
    for launcher in victims:
        os.kill(launcher, signal.SIGSTOP)  # so that it cannot clean up
    cluster.kill()
    for launcher in victims:
        os.kill(launcher, signal.SIGKILL)
    cluster.start()
    wait_for(lambda: not set(before) & set(processes(mark)))
    wait_for(lambda: len(running(cluster)) == len(SCRIPTS))


@pytest.mark.slow
def test_nothing_outlives_a_launcher_that_is_killed(cluster: Cluster, mark: str) -> None:
    before = processes(mark)
    for launcher in launchers(cluster):
        os.kill(launcher, signal.SIGKILL)
    wait_for(lambda: not set(before) & set(processes(mark)))
    assert ask(cluster, "GET", PODS)[0] == 200
