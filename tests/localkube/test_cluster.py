"""Cluster as a value of this process: started and closed in every order, and failing in between."""

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from localkube import cluster as cluster_module
from localkube.__main__ import main
from localkube.assembly import Extension, RunningCluster
from localkube.cluster import Cluster, ClusterFailed
from localkube.data_directory import NotPrivate
from localkube.names import DEFAULT
from tests.localkube.rest import Rest


def threads() -> set[str]:
    return {each.name for each in threading.enumerate() if each.name == "localkube"}


async def never(_: RunningCluster) -> None:
    await asyncio.Event().wait()


def test_closing_a_cluster_that_never_started_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_text("")
    monkeypatch.chdir(tmp_path)
    Cluster().close()
    assert (tmp_path / "precious").exists()


def test_a_cluster_that_does_not_run_uses_no_kubeconfig_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kubeconfig").write_text("the cluster of somebody else")
    monkeypatch.chdir(tmp_path)
    cluster = Cluster(nodes=0)
    with pytest.raises(ClusterFailed, match="does not run"):
        cluster.kubectl("delete", "namespace", "production")
    with cluster:
        pass
    with pytest.raises(ClusterFailed, match="does not run"):
        cluster.kubectl("get", "nodes")


def test_a_second_start_is_refused_and_the_first_cluster_goes_on() -> None:
    with Cluster(nodes=0) as cluster:
        directory = cluster.directory
        with pytest.raises(ClusterFailed, match="runs already"):
            cluster.start()
        assert cluster.directory == directory
        assert Rest(cluster).get("/api/v1/nodes")["items"] == []
    assert not threads()


def test_a_cluster_can_be_started_again_after_it_was_closed() -> None:
    cluster = Cluster(nodes=0)
    for _ in range(2):
        with cluster:
            assert Rest(cluster).get("/api/v1/nodes")["items"] == []


def test_files_of_containers_without_permissions_go_with_the_cluster() -> None:
    """Seen to fail before with an ordinary user, not with root."""
    with Cluster(nodes=0) as cluster:
        locked = cluster.directory / "locked"
        (locked / "inside").mkdir(parents=True)
        locked.chmod(0o500)
    assert not cluster.directory.exists()


def test_a_relative_directory_is_found_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Cluster(nodes=0, directory=Path("data")) as cluster:
        monkeypatch.chdir("/")
        assert cluster.directory == tmp_path / "data"
        assert Rest(cluster).get("/api/v1/nodes")["items"] == []


def test_a_directory_that_is_not_private_is_refused_and_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    cluster = Cluster(nodes=0, directory=tmp_path)
    with pytest.raises(NotPrivate):
        cluster.start()
    cluster.close()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_use_is_named_and_its_cluster_goes_on(tmp_path: Path) -> None:
    with Cluster(nodes=0, directory=tmp_path / "data") as cluster:
        with pytest.raises(ClusterFailed, match="is in use by process"):
            Cluster(nodes=0, directory=tmp_path / "data").start()
        assert Rest(cluster).get("/api/v1/nodes")["items"] == []


def test_a_port_in_use_is_an_error_and_nothing_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cluster = Cluster(nodes=0, port=taken.getsockname()[1])
        with pytest.raises(ClusterFailed, match="did not start"):
            cluster.start()
    assert not cluster.directory.exists()
    assert not threads()


@pytest.mark.parametrize("extension", [Extension(set_up=never), Extension(ready=never)])
def test_a_cluster_that_does_not_start_in_time_is_stopped(
    extension: Extension, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_START_LIMIT_S", 3.0)
    cluster = Cluster(nodes=0, extension=extension)
    with pytest.raises(ClusterFailed, match="within 3 s"):
        cluster.start()
    assert not cluster.directory.exists()
    assert not threads()


def _fails(_: object) -> None:
    raise ValueError("broken extension")


async def _fails_later(_: object) -> None:
    raise ValueError("broken extension")


@pytest.mark.parametrize(
    "extension",
    [
        Extension(set_up=_fails_later),
        Extension(ready=_fails_later),
        Extension(programs=_fails),  # type: ignore[arg-type]
        Extension(programs=lambda cluster: {"broken": lambda: _fails_later(cluster)}, ready=never),
        Extension(scheduler=_fails_later, ready=never),
    ],
)
def test_an_extension_that_fails_is_named_and_nothing_is_left(extension: Extension) -> None:
    cluster = Cluster(nodes=0, extension=extension)
    with pytest.raises(ClusterFailed, match="broken extension"):
        cluster.start()
    assert not cluster.directory.exists()
    assert not threads()


def test_nodes_without_a_running_kubelet_do_not_keep_the_cluster_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_READY_LIMIT_S", 2.0)
    with Cluster(nodes=1, directory=tmp_path / "data") as cluster:
        labels = {DEFAULT.node_label: "nodes"}
        stopped = {"labels": labels, "annotations": {DEFAULT.kubelet_annotation: "stopped"}}
        for metadata in ({"name": "foreign"}, {"name": "stopped", **stopped}):
            Rest(cluster).post("/api/v1/nodes", {"metadata": metadata})
    with Cluster(nodes=1, directory=tmp_path / "data") as cluster:
        assert len(Rest(cluster).get("/api/v1/nodes")["items"]) == 3


def test_a_cluster_with_a_failing_program_works_and_says_so_when_it_is_closed() -> None:
    fail = threading.Event()
    failed = threading.Event()

    async def program() -> None:
        await asyncio.to_thread(fail.wait)
        failed.set()
        raise ValueError("broken program")

    extension = Extension(programs=lambda _: {"broken": lambda: program()})
    cluster = Cluster(nodes=0, extension=extension).start()
    fail.set()
    assert failed.wait(30)
    assert Rest(cluster).get("/api/v1/nodes")["items"] == []
    with pytest.raises(ClusterFailed, match="broken program"):
        cluster.close()
    assert not cluster.directory.exists()


@pytest.mark.parametrize("options", [["--port", "65536"], ["--nodes", "-1"], ["--nodes", "many"]])
def test_options_that_make_no_sense_are_refused_in_a_sentence(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert f"argument {options[0]}" in capsys.readouterr().err


def test_after_a_restart_the_cluster_is_ready_when_its_kubelets_run(tmp_path: Path) -> None:
    """The store still says of every node that it is ready, from before."""
    reached: list[bool] = []

    async def ready(cluster: RunningCluster) -> None:
        reached.append(cluster.fleet.streams("node-0") is not None)

    for _ in range(2):
        with Cluster(directory=tmp_path / "data", extension=Extension(ready=ready)):
            pass
    assert reached == [True, True]
