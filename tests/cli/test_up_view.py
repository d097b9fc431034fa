"""What `gpupool up` says about a cluster that has started."""

from pathlib import Path

import pytest

from gpupool.cli.up_view import next_words, started_words
from gpupool.local.home import ClusterDirectory
from gpupool.local.pool_readiness import Pools
from kubeclient.objects import Obj


def pool(count: int, ready: int) -> Obj:
    phase = "Active" if ready == count else "Initializing"
    return {
        "metadata": {"name": "gpu"},
        "spec": {"instanceType": "ecs.g6.xlarge", "count": count},
        "status": {"phase": phase, "nodes": count, "readyNodes": ready},
    }


def test_a_cluster_with_all_its_nodes_is_ready() -> None:
    words = started_words("a", 2.21, Pools([pool(3, 3), pool(5, 5)]))
    assert words == 'Cluster "a" is ready after 2.2 s. 8 of 8 nodes are ready.'


def test_a_cluster_without_its_nodes_is_not_called_ready() -> None:
    words = started_words("a", 7.0, Pools([pool(1, 1), pool(500, 0)]))
    assert words.startswith('Cluster "a" runs after 7.0 s, but only 1 of 501 nodes are ready. ')
    assert words.endswith("kubectl get nodepools -w")


def test_a_cluster_without_pools_is_ready_at_once() -> None:
    assert started_words("a", 1.0, Pools([])) == 'Cluster "a" is ready after 1.0 s.'


@pytest.fixture
def command_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/bin/gpupool")


@pytest.mark.usefixtures("command_is_known")
def test_it_ends_with_what_one_wants_next() -> None:
    words = next_words(ClusterDirectory("default", Path("/data/my cluster")))
    assert words.splitlines() == [
        "",
        "Next:",
        "  export KUBECONFIG='/data/my cluster/kubeconfig'",
        "  kubectl get nodes",
        "  gpupool gpu list           # the cards and their health",
        "  gpupool console            # the same in a browser, and who holds what",
        "  gpupool example notebook   # JupyterLab with a card",
    ]


@pytest.mark.usefixtures("command_is_known")
def test_the_next_commands_name_the_cluster_and_the_context() -> None:
    words = next_words(ClusterDirectory("b", Path("/data/b")), context="gpupool-b")
    assert "  kubectl --context gpupool-b get nodes\n" in words
    assert "  gpupool gpu list --context gpupool-b " in words
    assert "  gpupool example notebook --name b " in words
    assert "export" not in words


def test_a_command_outside_of_the_path_is_shown_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "gpupool").touch()
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert "  .venv/bin/gpupool gpu list " in next_words(ClusterDirectory("a", Path("/data/a")))
    monkeypatch.chdir(Path(__file__).parent)
    assert f"  {tmp_path}/.venv/bin/gpupool gpu list " in next_words(
        ClusterDirectory("a", Path("/data/a"))
    )
