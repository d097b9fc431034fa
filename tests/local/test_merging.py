"""The user's own kubeconfig: changed on request, restored by reset."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpupool.cli.main import gpupool
from gpupool.local import kubeconfig_merge
from gpupool.local.home import CannotUse, ClusterDirectory, Home
from gpupool.local.merging import merge, unmerge
from gpupool.local.server_process import running_server
from localkube import kubeconfig
from tests.local.test_server import start

OWN = "apiVersion: v1\nkind: Config\ncurrent-context: work\nclusters: []\nusers: []\ncontexts: []\n"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: ClusterDirectory) -> Path:
    """The user's kubeconfig, beside a cluster that has one too."""
    path = tmp_path / "own"
    path.write_text(OWN)
    monkeypatch.setenv("KUBECONFIG", str(path))
    (cluster.path / "ca.crt").write_text("pem")
    access = kubeconfig.Kubeconfig("a", "https://127.0.0.1:1", b"pem", "secret")
    kubeconfig.write(cluster.kubeconfig, access)
    return path


def test_a_cluster_is_merged_and_removed(own: Path, cluster: ClusterDirectory) -> None:
    assert merge(cluster, 1234) == own
    merged = yaml.safe_load(own.read_text())
    assert merged["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1234"
    assert merged["users"][0]["user"]["token"] == "secret"
    assert merged["current-context"] == "work"
    assert unmerge(cluster) == own
    assert yaml.safe_load(own.read_text()) == yaml.safe_load(OWN)
    assert unmerge(cluster) is None


def test_reset_removes_the_entry(own: Path, cluster: ClusterDirectory) -> None:
    merge(cluster, 1)
    result = CliRunner().invoke(gpupool, ["reset", "--name", "a", "--yes"])
    assert result.output.splitlines()[0] == f"Its entry in {own} is removed."
    assert yaml.safe_load(own.read_text())["clusters"] == []


def test_reset_stops_no_server_whose_entry_it_cannot_remove(
    home: Home, own: Path, cluster: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge(cluster, 1)
    start(home, cluster)
    server = running_server(cluster)
    own.with_name("own.lock").touch()
    monkeypatch.setattr(kubeconfig_merge, "_LOCK_WAIT_S", 0.0)
    result = CliRunner().invoke(gpupool, ["reset", "--name", "a", "--yes"])
    assert result.exit_code == 1
    assert "own.lock exists" in result.output
    assert server is not None
    assert running_server(cluster) == server


def test_reset_leaves_a_kubeconfig_alone_that_was_not_merged_into(
    own: Path, cluster: ClusterDirectory
) -> None:
    CliRunner().invoke(gpupool, ["reset", "--name", "a", "--yes"])
    assert own.read_text() == OWN


def test_a_file_that_is_no_kubeconfig_is_left_alone(own: Path, cluster: ClusterDirectory) -> None:
    own.write_text("- 1\n")
    with pytest.raises(CannotUse, match="is not a kubeconfig"):
        merge(cluster, 1)
    assert own.read_text() == "- 1\n"
