"""`gpupool gpu fault` ends when the next command shows what it did."""

import json

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.testing import Cluster
from tests.e2e.kubectl import eventually

NODE = "node-with-cards"
POOL = {
    "name": "shared",
    "count": 1,
    "instanceType": "ecs.gn6v-c8g1.2xlarge",
    "labels": {"cgpu": "true"},
    "nodeNames": [NODE],
}


def run(*arguments: str) -> str:
    result = CliRunner().invoke(gpupool, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def used() -> object:
    """By programs, of the only card, once the agent has found it."""
    cards = json.loads(run("gpu", "list", NODE, "-o", "json"))["items"]
    return [card["memoryUsedMiB"] for card in cards]


def test_a_repaired_card_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(pools=[POOL]) as cluster:
        monkeypatch.setenv("GPUPOOL_HOME", str(cluster.directory.parent.parent))
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
        eventually(lambda: used() == [0])
        for _ in range(3):
            run("gpu", "fault", NODE, "0", "xid=79")
            eventually(lambda: used() == [None])
            run("gpu", "fault", NODE, "0", "recover")
            assert used() == [0]
