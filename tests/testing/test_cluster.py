"""gpupool.testing: a cluster for the duration of a test."""

import json
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from gpupool.testing import Cluster, ClusterFailed

POOL = {"name": "a", "instanceType": "ecs.g6.large", "count": 2}


def get(cluster: Cluster, path: str) -> Any:
    request = urllib.request.Request(
        cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"}
    )
    trust = ssl.create_default_context(cafile=str(cluster.ca))
    with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
        return json.load(answer)


def names(cluster: Cluster, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in get(cluster, path)["items"]]


def post_namespace(cluster: Cluster, name: str) -> None:
    request = urllib.request.Request(
        f"{cluster.url}/api/v1/namespaces",
        data=json.dumps({"metadata": {"name": name}}).encode(),
        headers={
            "Authorization": f"Bearer {cluster.token}",
            "Content-Type": "application/json",
        },
    )
    trust = ssl.create_default_context(cafile=str(cluster.ca))
    with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
        assert answer.status == 201


def test_a_cluster_answers_and_is_gone_afterwards() -> None:
    with Cluster(pools=[POOL]) as cluster:
        assert get(cluster, "/version")["gitVersion"].startswith("v1.")
        assert "default" in names(cluster, "/api/v1/namespaces")
        directory = cluster.directory
        assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert not directory.exists()


def test_what_was_acknowledged_survives_a_stop_and_a_kill() -> None:
    with Cluster(pools=[POOL]) as cluster:
        port, token = cluster.port, cluster.token
        post_namespace(cluster, "one")
        cluster.stop()
        cluster.start()
        post_namespace(cluster, "two")
        cluster.kill()
        cluster.start()
        assert {"one", "two"} <= set(names(cluster, "/api/v1/namespaces"))
        assert (cluster.port, cluster.token) == (port, token)


async def test_it_works_in_async_tests() -> None:
    async with Cluster(pools=[]) as cluster:
        assert cluster.port


def test_two_clusters_share_nothing() -> None:
    with Cluster(pools=[]) as one, Cluster(pools=[]) as other:
        post_namespace(one, "mine")
        assert "mine" not in names(other, "/api/v1/namespaces")
        assert one.token != other.token


def test_a_bad_configuration_is_shown() -> None:
    with pytest.raises(ClusterFailed) as failed, Cluster(pools=[{"name": "a", "cuont": 1}]):
        pass
    notes = "\n".join(failed.value.__notes__)
    assert 'pools[0].cuont: unknown field; did you mean "count"?' in notes


def test_pools_and_config_exclude_each_other() -> None:
    with pytest.raises(TypeError, match="not both"):
        Cluster(pools=[], config=Path("x"))


def test_the_server_ends_and_its_data_is_deleted_when_the_test_is_killed() -> None:
    code = (
        "import time\n"
        "from gpupool.testing import Cluster\n"
        "with Cluster(pools=[]) as cluster:\n"
        "    print(cluster.directory, flush=True)\n"
        "    print((cluster.directory / 'lock').read_text(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        server = int(process.stdout.readline())
        assert directory.is_dir()
        process.kill()
    deadline = time.monotonic() + 60
    while is_alive(server):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not directory.parent.parent.exists()


@pytest.mark.parametrize("kind", [str, Path])
def test_the_nodes_are_ready_when_it_has_started(tmp_path: Path, kind: type) -> None:
    head = {"apiVersion": "gpupool.io/v1alpha1", "kind": "Cluster"}
    file = tmp_path / "training.yaml"
    file.write_text(json.dumps({**head, "pools": [POOL]}))
    with Cluster(config=kind(file)) as cluster:
        nodes = get(cluster, "/api/v1/nodes")["items"]
        conditions = [{c["type"]: c["status"] for c in n["status"]["conditions"]} for n in nodes]
        assert [each["Ready"] for each in conditions] == ["True", "True"]


def test_a_start_that_fails_leaves_nothing_behind() -> None:
    cluster = Cluster(pools=[{"name": "a"}])
    for _ in range(2):
        with pytest.raises(ClusterFailed):
            cluster.start()
        assert not cluster.directory.parent.parent.exists()


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_fixture_is_a_running_cluster(gpupool_cluster: Cluster) -> None:
    assert len(names(gpupool_cluster, "/api/v1/nodes")) == 8
