"""A cluster on which there is something to see on every page of the console.

Cards that are full, half used, sick, cordoned and used from outside; pods that run, wait for all
kinds of reasons, and fail; workloads of every kind, a service, configuration, a past of a day. The
pictures of docs/console.md are made of it (tools/console_pictures.py), and the tests look at every
page of it in Chinese and with axe.
"""

import contextlib
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from gpupool.contract.names import LABEL_POOL
from gpupool.history.database import FILE
from gpupool.history.samples import Sample
from gpupool.history.series import Key, Kind
from gpupool.history.store import Entry, Store
from kubeclient.objects import Obj
from tests.browser import stage_objects as objects
from tests.e2e.api import call
from tests.e2e.kubectl import eventually

NAME = "training"
_MINUTE_MS = 60_000
_PAST_MINUTES = 26 * 60
_SHARED = {"cgpu": "true"}
POOLS = (
    {
        "name": "cgpu",
        "instanceType": "ecs.gn6v-c8g1.8xlarge",
        "count": 2,
        "naming": "address",
        "labels": {**_SHARED, "cgpu.disable.isolation": "false"},
    },
    {
        "name": "cgpu-no-isolation",
        "instanceType": "ecs.gn6v-c8g1.4xlarge",
        "count": 1,
        "naming": "address",
        "labels": {**_SHARED, "cgpu.disable.isolation": "true"},
    },
    {"name": "whole", "instanceType": "ecs.gn6v-c8g1.4xlarge", "count": 1, "naming": "address"},
)


@dataclass(frozen=True)
class Stage:
    home: Path
    url: str
    token: str

    @property
    def directory(self) -> Path:
        return self.home / "clusters" / NAME

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    def makes(self, path: str, obj: Obj) -> None:
        status, answer = call(self, "POST", path, obj)
        assert status in (201, 409), answer

    def lists(self, path: str) -> list[Obj]:
        status, answer = call(self, "GET", path)
        assert status == 200, answer
        return list(answer["items"])

    def gpupool(self, *arguments: str) -> None:
        _gpupool(self.home, *arguments, "--name", NAME)


@contextlib.contextmanager
def stage(home: Path) -> Iterator[Stage]:
    """Once everything on it is as it should be looked at. `home`: an empty directory."""
    config = home / "stage.yaml"
    head = {"apiVersion": "gpupool.io/v1alpha1", "kind": "Cluster", "region": "cn-shanghai"}
    config.write_text(yaml.safe_dump({**head, "pools": list(POOLS)}), encoding="utf-8")
    _gpupool(home, "machines", "add", "ecs.gn6v-c8g1.4xlarge", "trainer-1", "trainer-2")
    _gpupool(home, "up", "--name", NAME, "--config", str(config), "--port", "0")
    try:
        # Its past is written while it is stopped: a running cluster keeps the last hours in memory.
        _gpupool(home, "down", "--name", NAME)
        _remember(_found(home))
        _gpupool(home, "up", "--name", NAME)
        found = _found(home)
        _fill(found)
        yield found
    finally:
        _gpupool(home, "reset", "--name", NAME, "--yes")


@contextlib.contextmanager
def console_of(found: Stage) -> Iterator[str]:
    """The address of a console that its owner has started, with the key."""
    program = (sys.executable, "-m", "gpupool", "console", "--port", "0")
    process = subprocess.Popen(
        program, stdout=subprocess.PIPE, text=True, env=environment(found.home)
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://\S+/\?key=\S+", line)
        assert address is not None, line
        yield address[0]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def environment(home: Path) -> dict[str, str]:
    """Of programs that shall see this stage, and no other cluster of the machine."""
    kept = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    return {**kept, "GPUPOOL_HOME": str(home), "HOME": str(home)}


def _gpupool(home: Path, *arguments: str) -> None:
    program = (sys.executable, "-m", "gpupool", *arguments)
    done = subprocess.run(program, env=environment(home), capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"


def _found(home: Path) -> Stage:
    file = home / "clusters" / NAME / "kubeconfig"
    config = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Stage(
        home, config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
    )


def _fill(found: Stage) -> None:
    eventually(lambda: _have_cards(found), within_s=120)
    nodes = {pool: nodes_of(found, pool) for pool in ("cgpu", "cgpu-no-isolation", "whole")}
    # Before the pods come: no pod shall be on a card that is about to break.
    found.gpupool("gpu", "fault", nodes["cgpu"][1], "3", "xid=79")
    found.gpupool("gpu", "fault", nodes["cgpu"][0], "3", "ecc=3")
    found.gpupool("gpu", "fault", nodes["cgpu-no-isolation"][0], "1", "memory=4096")
    found.gpupool("gpu", "cordon", nodes["cgpu"][1], "2", "--reason", "firmware")
    for namespace in objects.NAMESPACES:
        found.makes("/api/v1/namespaces", {"metadata": {"name": namespace}})
    eventually(lambda: _have_accounts(found), within_s=120)
    for path, obj in objects.everything():
        found.makes(path, obj)
    eventually(lambda: _is_set(found), within_s=240)


def nodes_of(found: Stage, pool: str) -> list[str]:
    nodes = [node["metadata"] for node in found.lists("/api/v1/nodes")]
    return sorted(each["name"] for each in nodes if each["labels"].get(LABEL_POOL) == pool)


def _have_cards(found: Stage) -> bool:
    nodes = found.lists("/api/v1/nodes")
    wanted = ("aliyun.com/gpu-mem", "nvidia.com/gpu")
    offered = [node["status"].get("allocatable") or {} for node in nodes]
    return len(nodes) == 4 and all(any(name in each for name in wanted) for each in offered)


def _have_accounts(found: Stage) -> bool:
    path = "/api/v1/namespaces/{}/serviceaccounts"
    return all(found.lists(path.format(each)) for each in objects.NAMESPACES)


def _is_set(found: Stage) -> bool:
    """Those that can run do, and those that cannot say why."""
    pods = [
        pod for each in objects.NAMESPACES for pod in found.lists(f"/api/v1/namespaces/{each}/pods")
    ]
    return len(pods) >= objects.PODS and all(_has_settled(pod) for pod in pods)


def _has_settled(pod: Obj) -> bool:
    status = pod["status"]
    if not pod["spec"].get("nodeName"):
        return any(each.get("message") for each in status.get("conditions") or ())
    return status.get("phase") in ("Running", "Succeeded", "Failed")


def _remember(found: Stage) -> None:
    """A past of a day, for the cluster and the container whose page has a picture."""
    now = int(time.time() * 1000) // _MINUTE_MS * _MINUTE_MS
    keys = (Key(Kind.CLUSTER, ""), Key(Kind.CONTAINER, objects.SEEN_CONTAINER))
    with Store(found.directory / FILE) as store:
        for minute in range(_PAST_MINUTES, 1, -1):
            begin = now - minute * _MINUTE_MS
            samples = (_of_cluster(minute), _of_container(minute))
            entries = dict(zip(keys, map(Entry, samples), strict=True))
            store.add(begin, begin + _MINUTE_MS, entries)


def _of_cluster(minute: int) -> Sample:
    day = 0.5 + 0.3 * math.sin(minute / 220) + 0.08 * math.sin(minute / 37)
    cards, all_mib = 12, 12 * 16130
    return Sample(
        seen=_MINUTE_MS,
        have=cards * _MINUTE_MS,
        given=int(cards * _MINUTE_MS * day),
        told=cards * _MINUTE_MS,
        used=int(cards * _MINUTE_MS * day * 0.6),
        memory_given=int(60 * all_mib * day),
        memory_used=int(60 * all_mib * day * (0.55 + 0.1 * math.sin(minute / 50))),
    )


def _of_container(minute: int) -> Sample:
    wave = 0.62 + 0.2 * math.sin(minute / 9) * math.cos(minute / 31)
    return Sample(
        seen=_MINUTE_MS,
        given=_MINUTE_MS // 3,
        told=_MINUTE_MS // 3,
        used=int(_MINUTE_MS / 3 * (wave - 0.1)),
        memory_given=60 * 6451,
        memory_used=int(60 * 6451 * wave),
        peak=5222,
    )
