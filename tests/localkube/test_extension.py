"""The extension points of EXTENDING.md suffice for a product that is not gpupool.

"acme" sells sprockets. Its nodes get sprockets from a device plugin that runs as a hosted
container, its controller copies labels, its image has a stand-in, and its hook sets a variable.
"""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import CONFIG_MAPS, DAEMON_SETS
from localkube.apiserver.security.bootstrap_roles import cluster_binding, cluster_role
from localkube.apiserver.security.bootstrap_rules import READ, rule
from localkube.assembly import Extension, RunningCluster
from localkube.cluster import Cluster
from localkube.controllers.run import Context, Controller, Watch
from localkube.kubelet.hosted import Hosted, ProgramContext
from localkube.kubelet.images import KnownImages, StandIn
from localkube.kubelet.node_hooks import Adjustment, StartingContainer
from localkube.names import Names
from tests.localkube.kubelet.devices.plugin import FakePlugin, register
from tests.localkube.rest import Rest

SPROCKET = "acme.example/sprocket"
PLUGINS = "/var/lib/kubelet/device-plugins"
STAND_IN = """
import pathlib, signal, sys

def main():
    print("trainer stands in for", sys.argv[-1], flush=True)
    signal.pause()
"""


class Hooks:
    """Every node has sprockets; a container that has one is told so."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def node_added(self, node: str, instance_type: str) -> bool:
        self.nodes.append(node)
        return True

    def adjust(self, container: StartingContainer) -> Adjustment:
        limits = (container.spec.get("resources") or {}).get("limits") or {}
        return Adjustment({"SPROCKETS": limits[SPROCKET]}) if SPROCKET in limits else Adjustment()


async def run_plugin(around: ProgramContext) -> int:
    """What a device plugin's container does on any node: register over gRPC, then serve."""
    plugin = FakePlugin("s0", "s1", name="sprockets")
    async with plugin.serving(around.mounts[PLUGINS]):
        await register(around.mounts[PLUGINS], "sprockets.sock", SPROCKET)
        await asyncio.Event().wait()
    return 0


async def copy_label(key: Key, context: Context) -> float | None:
    found = context.of(CONFIG_MAPS).get(key[1], key[0])
    labels = (found or {}).get("metadata", {}).get("labels") or {}
    if labels.get("acme.example/wanted") and "acme.example/done" not in labels:
        change = {"metadata": {"labels": {"acme.example/done": labels["acme.example/wanted"]}}}
        await context.kube.patch(CONFIG_MAPS.path(key[0], key[1]), change)
    return None


async def set_up(cluster: RunningCluster) -> None:
    labels = {"app": "sprockets"}
    volume = {"name": "plugins", "hostPath": {"path": PLUGINS}}
    container = {
        "name": "plugin",
        "image": "acme/sprocket-plugin:1",
        "volumeMounts": [{"name": "plugins", "mountPath": PLUGINS}],
    }
    spec = {"containers": [container], "volumes": [volume]}
    daemon_set = {
        "metadata": {"name": "sprockets", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    if cluster.is_new:
        await cluster.admin().create(DAEMON_SETS, daemon_set)


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Hooks]]:
    package = tmp_path_factory.mktemp("packages") / "acme_images"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "trainer.py").write_text(STAND_IN)
    hooks = Hooks()
    started = threading.Event()

    async def program(_: RunningCluster) -> None:
        started.set()
        await asyncio.Event().wait()

    async def ready(_: RunningCluster) -> None:
        await asyncio.to_thread(started.wait)

    extension = Extension(
        names=Names(product="acme", domain="acme.example"),
        hooks=hooks,
        images=KnownImages(stand_ins={"trainer": StandIn("acme_images.trainer")}),
        packages=(package,),
        hosted={"acme/sprocket-plugin": Hosted(run_plugin, "kube-system")},
        controllers=(Controller("acme", (Watch(CONFIG_MAPS),), copy_label),),
        roles=[
            cluster_role("acme:reader", (rule(READ, "core", "nodes"),)),
            cluster_binding("acme:reader", ("User ann",)),
        ],
        set_up=set_up,
        programs=lambda cluster: {"acme": lambda: program(cluster)},
        ready=ready,
    )
    with Cluster(nodes=2, extension=extension) as cluster:
        yield cluster, hooks


def test_the_kubeconfig_and_the_nodes_carry_the_products_name(
    acme: tuple[Cluster, Hooks],
) -> None:
    cluster, hooks = acme
    assert "acme-local" in cluster.kubeconfig.read_text()
    nodes = Rest(cluster).get("/api/v1/nodes")["items"]
    assert all("node.acme.example/pool" in node["metadata"]["labels"] for node in nodes)
    assert sorted(hooks.nodes) == ["node-0", "node-1"]


def test_a_pod_gets_a_device_of_a_plugin_that_registered_over_grpc(
    acme: tuple[Cluster, Hooks],
) -> None:
    cluster, _ = acme
    rest = Rest(cluster)

    def has_sprockets(node: Obj) -> bool:
        return bool(node["status"]["allocatable"].get(SPROCKET) == "2")

    for name in ("node-0", "node-1"):
        rest.until(f"/api/v1/nodes/{name}", has_sprockets)
    limits = {SPROCKET: "1"}
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sh", "-c", "echo $THINGS of $SPROCKETS; sleep 1000"],
        "resources": {"limits": limits},
    }
    for number in range(5):
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        pod = {"metadata": {"name": f"p{number}"}, "spec": spec}
        rest.post("/api/v1/namespaces/default/pods", pod)
    for number in range(4):
        rest.until(f"/api/v1/namespaces/default/pods/p{number}", _is_running)
    said = rest.text("/api/v1/namespaces/default/pods/p0/log")
    assert said in ("s0 of 1\n", "s1 of 1\n")
    # There are two sprockets on each of two nodes: one pod of five waits, and says why.
    last = rest.until("/api/v1/namespaces/default/pods/p4", _is_unschedulable)
    (condition,) = last["status"]["conditions"]
    assert condition["message"] == f"0/2 nodes are available: 2 Insufficient {SPROCKET}."
    rest.delete("/api/v1/namespaces/default/pods/p0")
    rest.until("/api/v1/namespaces/default/pods/p4", _is_running)


def test_a_stand_in_of_the_product_runs_for_its_image(acme: tuple[Cluster, Hooks]) -> None:
    cluster, _ = acme
    rest = Rest(cluster)
    spec = {
        "containers": [{"name": "c", "image": "acme/trainer:1"}],
        "terminationGracePeriodSeconds": 0,
    }
    rest.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "trainer"}, "spec": spec})
    rest.until("/api/v1/namespaces/default/pods/trainer", _is_running)
    said = rest.text_until("/api/v1/namespaces/default/pods/trainer/log", "acme/trainer:1\n")
    assert said == "trainer stands in for acme/trainer:1\n"


def test_a_controller_of_the_product_runs_beside_the_built_in_ones(
    acme: tuple[Cluster, Hooks],
) -> None:
    cluster, _ = acme
    rest = Rest(cluster)
    metadata = {"name": "m", "labels": {"acme.example/wanted": "yes"}}
    rest.post("/api/v1/namespaces/default/configmaps", {"metadata": metadata})
    rest.until(
        "/api/v1/namespaces/default/configmaps/m",
        lambda found: found["metadata"]["labels"].get("acme.example/done") == "yes",
    )


def test_a_role_of_the_product_is_there_from_the_start(acme: tuple[Cluster, Hooks]) -> None:
    cluster, _ = acme
    group = "/apis/rbac.authorization.k8s.io/v1"
    found = Rest(cluster).get(f"{group}/clusterrolebindings/acme:reader")
    assert found["subjects"][0]["name"] == "ann"


def _is_running(pod: Obj) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def _is_unschedulable(pod: Obj) -> bool:
    return any(c["reason"] == "Unschedulable" for c in pod["status"].get("conditions") or ())


def test_data_outlives_a_cluster_that_was_given_a_directory(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with Cluster(directory=directory) as cluster:
        Rest(cluster).post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
    with Cluster(directory=directory) as cluster:
        found = Rest(cluster).get("/api/v1/namespaces/default/configmaps/kept")
    assert found["metadata"]["name"] == "kept"


def test_a_temporary_cluster_leaves_nothing_behind() -> None:
    cluster = Cluster()
    with cluster:
        directory = cluster.directory
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not directory.exists()
    cluster.close()  # a second time: harmless


class BrokenHooks(Hooks):
    def adjust(self, container: StartingContainer) -> Adjustment:
        raise KeyError("sprocket")


def test_a_hook_that_fails_is_told_in_the_status_of_the_pod() -> None:
    with Cluster(extension=Extension(hooks=BrokenHooks())) as cluster:
        rest = Rest(cluster)
        container = {"name": "c", "image": "busybox", "command": ["sleep", "60"]}
        path = "/api/v1/namespaces/default/pods"
        rest.post(path, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
        found = rest.until(f"{path}/p", lambda pod: "node hook" in str(pod["status"]))
        waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"] == "node hook: KeyError: 'sprocket'"
