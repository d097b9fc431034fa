"""`gpupool gpu list` shows what a pod takes of a card, on a whole local cluster."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.testing import Cluster
from tests.e2e.api import call
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import eventually

SHARE_MIB = 3226  # 3 of 15 units of 16130 MiB


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"pools": list(SHARED_POOLS)}) as made:
        eventually(lambda: len(cards(made)) == 2, within_s=60)
        yield made


def listed(cluster: Cluster, *arguments: str) -> tuple[list[dict[str, Any]], str]:
    """Cards, and what is said beside them."""
    where = ("--kubeconfig", str(cluster.kubeconfig))
    done = CliRunner().invoke(gpupool, ["gpu", "list", "-o", "json", *arguments, *where])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["items"], done.stderr


def cards(cluster: Cluster) -> list[dict[str, Any]]:
    return listed(cluster)[0]


def pod(name: str, node: str) -> dict[str, Any]:
    """Takes all of the GPU memory that it may use, and keeps it."""
    container = {
        "name": "taker",
        "image": "cheyang/gpu-player:v2",
        "resources": {"limits": {"aliyun.com/gpu-mem": 3}},
    }
    metadata = {"name": name, "namespace": "default"}
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_memory_that_a_pod_takes_is_used_and_the_pod_is_named(cluster: Cluster) -> None:
    for card in cards(cluster):
        assert card["memoryUsedMiB"] == 0
        assert card["memoryFreeMiB"] == 16130
        assert card["smPercent"] == 0
        assert 30 <= card["temperatureCelsius"] <= 40
        assert 0 < card["powerWatts"] < 60 < card["powerLimitWatts"]
        assert card["usedBy"] == []
    node = cards(cluster)[0]["node"]
    path = "/api/v1/namespaces/default/pods"
    call(cluster, "POST", path, pod("taker", node))
    try:
        eventually(lambda: listed(cluster, node)[0][0]["memoryUsedMiB"] == SHARE_MIB, within_s=60)
        [card], said = listed(cluster, node)
        assert said == ""
        assert card["memoryFreeMiB"] == 16130 - SHARE_MIB
        [use] = card["usedBy"]
        assert (use["namespace"], use["pod"], use["container"]) == ("default", "taker", "taker")
        assert use["memoryUsedMiB"] == use["memoryPeakMiB"] == SHARE_MIB
        assert use["memoryRequestMiB"] == SHARE_MIB
        limit = {"limiter": SHARE_MIB, "none": None}[use["isolation"]]
        assert use["memoryLimitMiB"] == limit
        # It computes nothing, and so draws nothing.
        assert (use["smPercent"], use["powerWatts"]) == (0, 0)
        assert use["idleSeconds"] <= time.time() - use["watchedSinceSeconds"]
        eventually(lambda: listed(cluster, node)[0][0]["usedBy"][0]["idleSeconds"] > 3, 60)
        [other] = (card for card in cards(cluster) if card["node"] != node)
        assert other["memoryUsedMiB"] == 0
    finally:
        call(cluster, "DELETE", f"{path}/taker")
    eventually(lambda: listed(cluster, node)[0][0]["memoryUsedMiB"] == 0, within_s=60)


def test_agents_elsewhere_are_not_asked_and_the_cards_are_listed_as_unknown(
    cluster: Cluster,
) -> None:
    found, said = listed(cluster, "--agents", "default")
    assert [card["memoryUsedMiB"] for card in found] == [None, None]
    assert said.startswith("No readings of 2 nodes (")
    assert said.endswith("no agent runs on it.\n")
