"""Whatever happens meanwhile, every container has the cards and the limit that its pod was given.

Pods of equal and unequal sizes are made at once, in random order, while agents are killed and the
power fails; then each container says what it sees. A kubelet rejects a pod for good while it has no
plugin to ask: such pods are made anew, as a ReplicaSet would.
"""

import json
import random
import urllib.error
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from gpupool.contract.allocation import allocation_of
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.api import call, log_of
from tests.e2e.kubectl import eventually

PODS = "/api/v1/namespaces/default/pods"
NOT_RUNNING = f"{PODS}?fieldSelector=status.phase%21%3DRunning"
AGENTS = "/api/v1/namespaces/kube-system/pods"
SAYS = "env; echo; cat /etc/gpupool/limits; echo .; exec sleep 1000000"
LABELS = {"cgpu": "true"}
MACHINE = {"instanceType": "ecs.gn6v-c10g1.20xlarge", "labels": LABELS}  # eight V100 of 15 units
OUTAGES = (urllib.error.URLError, ConnectionError, TimeoutError, json.JSONDecodeError)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(pools=[{"name": "gpus", "count": request.param, **MACHINE}]) as running:
        eventually(lambda: _units(running) == request.param * 8 * 15, within_s=60)
        yield running


def _units(cluster: Cluster) -> int:
    nodes = call(cluster, "GET", "/api/v1/nodes")[1]["items"]
    return sum(int(n["status"]["allocatable"].get("aliyun.com/gpu-mem", 0)) for n in nodes)


def _pod(name: str, units: int) -> Obj:
    limits = {"aliyun.com/gpu-mem": units}
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", SAYS],
        "resources": {"limits": limits},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def _make(cluster: Cluster, name: str, units: int) -> None:
    """Until it is there, whatever becomes of the server."""

    def is_made() -> bool:
        with suppress(*OUTAGES):
            return call(cluster, "POST", PODS, _pod(name, units))[0] in (201, 409)
        return False

    eventually(is_made, within_s=120)


def _kill_agents(cluster: Cluster, chosen: random.Random) -> None:
    with suppress(*OUTAGES):
        agents = call(cluster, "GET", AGENTS)[1]["items"]
        for agent in chosen.sample(agents, k=len(agents) // 2):
            call(cluster, "DELETE", f"{AGENTS}/{agent['metadata']['name']}")


def _said(cluster: Cluster, pod: str) -> str:
    return log_of(cluster, "default", pod)


def _running(cluster: Cluster, sizes: list[int]) -> list[Obj]:
    """All of them; empty as long as some are not."""
    waiting: list[Obj] = call(cluster, "GET", NOT_RUNNING)[1]["items"]
    for pod in waiting:
        if pod.get("status", {}).get("phase") == "Failed":
            assert pod["status"]["reason"] == "UnexpectedAdmissionError", pod["status"]
            name = pod["metadata"]["name"]
            call(cluster, "DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            _make(cluster, name, sizes[int(name.removeprefix("p"))])
    if waiting:
        return []
    items: list[Obj] = call(cluster, "GET", PODS)[1]["items"]
    return items if len(items) == len(sizes) else []


def _mismatch(cluster: Cluster, pod: Obj) -> str:
    """What a container sees that its pod was not given; empty when all is right."""
    notes = pod["metadata"]["annotations"]
    # After the power cut, some have started twice into one log: the last one counts.
    last = _said(cluster, pod["metadata"]["name"]).removesuffix(".\n").rpartition("\n.\n")[2]
    # It may have been cut off in mid-word by the power cut, too: the last of each part counts.
    before, _, limits = last.rpartition("\n\n")
    environment = before.rpartition("\n\n")[2]
    variables = dict(line.partition("=")[::2] for line in environment.splitlines())
    expected = {
        "NVIDIA_VISIBLE_DEVICES": notes["devices.gpupool.io/main"],
        "ALIYUN_COM_GPU_MEM_IDX": notes["indexes.gpupool.io/main"],
        "ALIYUN_COM_GPU_MEM_CONTAINER": pod["spec"]["containers"][0]["resources"]["limits"][
            "aliyun.com/gpu-mem"
        ],
    }
    wrong = {k: variables.get(k) for k, v in expected.items() if variables.get(k) != v}
    if limits != notes["limits.gpupool.io/main"]:
        wrong["limits"] = limits
    return f"{pod['metadata']['name']}: {wrong}" if wrong else ""


def _held(pods: list[Obj]) -> Counter[tuple[str, str]]:
    """Units by node and card."""
    found: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        for gpus in allocation_of(
            pod["metadata"]["annotations"]["gpupool.io/allocation"]
        ).containers:
            for share in gpus.shares:
                found[pod["spec"]["nodeName"], share.uuid] += share.units
    return found


def _experiment(cluster: Cluster, sizes: list[int], *, outages: int) -> None:
    assert sum(sizes) <= _units(cluster)
    chosen = random.Random(3)
    chosen.shuffle(sizes)
    with ThreadPoolExecutor(8) as hands:
        made = [hands.submit(_make, cluster, f"p{at}", units) for at, units in enumerate(sizes)]
        for outage in range(outages):
            made[len(made) * outage // outages].result()
            _kill_agents(cluster, chosen)
        cluster.kill()
        cluster.start()
        _kill_agents(cluster, chosen)
        for each in made:
            each.result()
    pods = eventually(lambda: _running(cluster, sizes), within_s=1500)
    mismatches = [text for pod in pods if (text := _mismatch_once_said(cluster, pod))]
    assert mismatches == []
    held = _held(pods)
    assert max(held.values()) <= 15
    assert sum(held.values()) == sum(sizes)


def _mismatch_once_said(cluster: Cluster, pod: Obj) -> str:
    eventually(lambda: _said(cluster, pod["metadata"]["name"]).endswith(".\n"))
    return _mismatch(cluster, pod)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cluster", [1], indirect=True)
def test_every_container_has_the_cards_and_the_limit_of_its_pod(cluster: Cluster) -> None:
    _experiment(cluster, [3] * 20 + [5] * 6 + [7] * 2 + [1] * 10, outages=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cluster", [16], indirect=True)
def test_a_thousand_containers_have_the_cards_and_limits_of_their_pods(cluster: Cluster) -> None:
    sizes = {1: 560, 2: 200, 3: 140, 4: 70, 5: 30}
    _experiment(cluster, [size for size, count in sizes.items() for _ in range(count)], outages=6)
