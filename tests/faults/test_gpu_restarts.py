"""However a cluster with GPU pods ends: no pod changes its card, and nothing is left over."""

import os
import random
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles, read_cards
from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.faults.whole_cluster import ask, wait_for

POOL = {"name": "g", "instanceType": "ecs.gn6v-c8g1.8xlarge", "count": 2}  # four cards each
PODS = "/api/v1/namespaces/default/pods"
AGENTS = "/api/v1/namespaces/kube-system/pods?labelSelector=name%3Dgpushare-device-plugin-ds"
NODES = "/api/v1/nodes"
CARDS = 8
TAKE_MEMORY = "example.com/tensorflow-gpu-mem:1"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=[POOL]) as made:
        wait_for(lambda: allocatable(made) == CARDS)
        yield made


def pod(name: str) -> Obj:
    container = {
        "name": "main",
        "image": TAKE_MEMORY,
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def allocatable(cluster: Cluster) -> int:
    nodes = ask(cluster, "GET", NODES)[1]["items"]
    return sum(int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) for node in nodes)


def running(cluster: Cluster) -> dict[str, str]:
    """Of pods that are ready: the card that each has."""
    items = ask(cluster, "GET", PODS)[1]["items"]
    return {
        pod["metadata"]["name"]: card_of(pod)
        for pod in items
        if any(s.get("ready") for s in pod.get("status", {}).get("containerStatuses", ()))
        and "deletionTimestamp" not in pod["metadata"]
    }


def card_of(pod: Obj) -> str:
    return str(pod["metadata"]["annotations"]["devices.gpupool.io/main"])


def in_use(cluster: Cluster) -> dict[str, int]:
    """By the drivers: cards that hold memory, and how many processes hold it."""
    places = (cluster.directory / "pods" / "hardware").iterdir()
    cards = [card for place in places for card in read_cards(NodeFiles(place))]
    return {card.uuid: len(card.processes) for card in cards if card.used_bytes}


def granted(cluster: Cluster) -> int:
    """Devices that the kubelets remember as taken."""
    files = (cluster.directory / "pods" / "nodes").rglob("kubelet_internal_checkpoint")
    return sum(len(re.findall(r"AllocResp", file.read_text())) for file in files)


def fill(cluster: Cluster, count: int) -> dict[str, str]:
    for number in range(count):
        assert ask(cluster, "POST", PODS, pod(f"p{number}"))[0] == 201
    wait_for(lambda: len(running(cluster)) == count)
    wait_for(lambda: len(in_use(cluster)) == count)
    cards = running(cluster)
    assert set(cards.values()) == set(in_use(cluster))
    return cards


def assert_nothing_is_left(cluster: Cluster) -> None:
    assert ask(cluster, "DELETE", f"{PODS}?gracePeriodSeconds=0")[0] == 200
    wait_for(lambda: not ask(cluster, "GET", PODS)[1]["items"])
    wait_for(lambda: not in_use(cluster))
    wait_for(lambda: granted(cluster) == 0)
    wait_for(lambda: allocatable(cluster) == CARDS)


def test_pods_keep_their_cards_when_the_power_fails(cluster: Cluster) -> None:
    before = fill(cluster, CARDS)
    for _ in range(2):
        cluster.kill()
        cluster.start()
        wait_for(lambda: running(cluster) == before)
        wait_for(lambda: in_use(cluster) == dict.fromkeys(before.values(), 1))
    assert_nothing_is_left(cluster)


def test_pods_do_not_notice_that_agents_are_killed(cluster: Cluster) -> None:
    before = fill(cluster, 5)
    started = ids(cluster)
    for agent in ask(cluster, "GET", AGENTS)[1]["items"]:
        path = f"/api/v1/namespaces/kube-system/pods/{agent['metadata']['name']}"
        assert ask(cluster, "DELETE", f"{path}?gracePeriodSeconds=0")[0] == 200
    wait_for(lambda: allocatable(cluster) == CARDS)
    assert running(cluster) == before
    assert ids(cluster) == started
    assert ask(cluster, "POST", PODS, pod("another"))[0] == 201
    wait_for(lambda: len(running(cluster)) == 6)
    assert len(set(running(cluster).values())) == 6
    assert_nothing_is_left(cluster)


def ids(cluster: Cluster) -> set[str]:
    items = ask(cluster, "GET", PODS)[1]["items"]
    return {item["status"]["containerStatuses"][0]["containerID"] for item in items}


@pytest.mark.slow
def test_nothing_leaks_when_everything_is_killed_at_random(cluster: Cluster) -> None:
    choice = random.Random(7)
    before = fill(cluster, CARDS)
    for _ in range(12):
        match choice.choice(["cluster", "containers", "agent"]):
            case "cluster":
                cluster.kill()
                cluster.start()
            case "containers":
                for process in processes_on_cards(cluster):
                    if choice.random() < 0.5:
                        os.kill(process, signal.SIGKILL)
            case _:
                agents = ask(cluster, "GET", AGENTS)[1]["items"]
                if agents:
                    name = choice.choice(agents)["metadata"]["name"]
                    path = f"/api/v1/namespaces/kube-system/pods/{name}?gracePeriodSeconds=0"
                    ask(cluster, "DELETE", path)
    wait_for(lambda: allocatable(cluster) == CARDS)
    cards = {p["metadata"]["name"]: card_of(p) for p in ask(cluster, "GET", PODS)[1]["items"]}
    assert cards == before  # some may be waiting for their next run
    assert_nothing_is_left(cluster)
    # On the nodes' disks: the files of containers come and go while one looks.
    sockets = list((cluster.directory / "pods" / "nodes").rglob("gpupool-*.sock"))
    assert len(sockets) == 2  # one of each node's agent


def processes_on_cards(cluster: Cluster) -> list[int]:
    places: list[Path] = list((cluster.directory / "pods" / "hardware").iterdir())
    cards = [card for place in places for card in read_cards(NodeFiles(place))]
    return [p.pid for card in cards for p in card.processes if p.pid]
