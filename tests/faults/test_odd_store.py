"""A cluster whose store has objects that its programs do not understand comes up and works."""

from pathlib import Path

from gpupool.local.config.settings import NAMES
from gpupool.testing import Cluster as GpuCluster
from localkube import Cluster
from localkube.names import Names
from tests.faults.odd_store import make_odd
from tests.faults.whole_cluster import ask, wait_for
from tests.localkube.rest import Rest

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SPEC = {"containers": [{"name": "c", "image": "pause"}]}
LABELS = {"matchLabels": {"a": "web"}}
TEMPLATE = {"metadata": {"labels": {"a": "web"}}, "spec": SPEC}
WEB = {
    "metadata": {"name": "web"},
    "spec": {"replicas": 2, "selector": LABELS, "template": TEMPLATE},
}


def test_a_cluster_with_odd_objects_comes_up_and_works(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with Cluster(nodes=1, directory=directory):
        pass
    assert make_odd(directory, Names()) > 200
    cluster = Cluster(nodes=0, directory=directory)
    with cluster:
        rest = Rest(cluster)
        rest.post(DEPLOYMENTS, WEB)
        rest.until(f"{DEPLOYMENTS}/web", lambda found: found["status"].get("readyReplicas") == 2)
        status, text = rest.ready()
        assert status == 200, text
        assert "cannot handle Pod odd/odd-" in text
        # Somebody must find them, to delete them.
        for kind in ("pods", "services", "nodes", "deployments", "jobs", "cronjobs", "pvc", "ds"):
            assert "odd-0" in cluster.kubectl("get", kind, "-A")
            cluster.kubectl("delete", kind, "-A", "-l", "is=odd", "--wait=false", "--force")
        odd_pods = "/api/v1/namespaces/odd/pods?labelSelector=is%3Dodd"
        rest.until(odd_pods, lambda found: not found["items"])
        rest.delete(f"{DEPLOYMENTS}/web")
        rest.until(PODS, lambda found: not found["items"])


def test_a_gpu_cluster_that_was_killed_with_odd_objects_comes_up_and_works() -> None:
    cluster = GpuCluster()
    try:
        cluster.start()
        cluster.kill()
        make_odd(cluster.directory, NAMES)
        cluster.start()
        limits = {"limits": {"aliyun.com/gpu-mem": "1"}}
        container = {"name": "c", "image": "pause", "resources": limits}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        assert ask(cluster, "POST", PODS, pod)[0] == 201
        wait_for(lambda: ask(cluster, "GET", f"{PODS}/p")[1]["status"].get("phase") == "Running")
    finally:
        cluster.close()
