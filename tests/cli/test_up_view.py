"""What `gpupool up` says about a cluster that has started."""

from pathlib import Path

import pytest

from gpupool.cli.example_files import known_examples
from gpupool.cli.next_steps import Step, export_step, steps_words
from gpupool.cli.up_view import next_words, notebook_for, started_words
from gpupool.local.home import ClusterDirectory
from gpupool.local.pool_readiness import Pools
from kubeclient.objects import Obj


def pool(count: int, ready: int, kind: str = "ecs.g6.xlarge", **labels: str) -> Obj:
    phase = "Active" if ready == count else "Initializing"
    return {
        "metadata": {"name": "gpu"},
        "spec": {"instanceType": kind, "count": count, "labels": labels},
        "status": {"phase": phase, "nodes": count, "readyNodes": ready},
    }


def test_a_cluster_with_all_its_nodes_is_ready() -> None:
    words = started_words("a", 2.21, Pools([pool(3, 3), pool(5, 5)]))
    assert words == 'Cluster "a" is ready after 2.2 s. 8 of 8 nodes are ready.'


def test_one_node_is_spoken_of_as_one() -> None:
    words = started_words("a", 2.21, Pools([pool(1, 1)]))
    assert words.endswith("1 of 1 node is ready.")


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
        "  gpupool gpu list           # cards and their health",
        "  gpupool console            # the same in a browser",
        "  gpupool example notebook   # JupyterLab with a card",
    ]


@pytest.mark.usefixtures("command_is_known")
def test_after_an_example_its_own_steps_come_last() -> None:
    more = (Step("kubectl port-forward deployment/tf-notebook 8888"),)
    words = next_words(ClusterDirectory("default", Path("/data")), more=more, notebook="")
    assert words.splitlines()[-1] == "  kubectl port-forward deployment/tf-notebook 8888"
    assert "example notebook" not in words
    assert words.count("export KUBECONFIG=") == 1


@pytest.mark.parametrize(
    ("pools", "example"),
    [
        ([pool(3, 3), pool(2, 2, "ecs.gn4-c4g1.xlarge")], "notebook"),
        ([pool(1, 0, "ecs.gn5-c4g1.xlarge")], "notebook-service"),
        (
            [pool(0, 0, "ecs.gn4-c4g1.xlarge"), pool(1, 1, "ecs.gn5-c4g1.xlarge")],
            "notebook-service",
        ),
        ([pool(1, 1, "ecs.gn4-c4g1.xlarge", cgpu="true")], ""),
        ([pool(4, 4, "ecs.gn6v-c8g1.16xlarge", cgpu="true")], ""),
        ([pool(3, 3), pool(1, 1, "type-of-a-cluster-file")], ""),
        ([], ""),
    ],
)
def test_a_notebook_is_offered_where_a_card_is_given_to_it(pools: list[Obj], example: str) -> None:
    assert notebook_for(Pools(pools)) == example
    assert notebook_for(None) == "", "in the foreground nobody asks for the pools"


def test_the_notebook_that_is_offered_on_an_m40_wants_one() -> None:
    wanted = known_examples()["notebook"].read_text(encoding="utf-8")
    assert "aliyun.accelerator/nvidia_name: Tesla-M40" in wanted
    assert "nodeSelector" not in known_examples()["notebook-service"].read_text(encoding="utf-8")


@pytest.mark.usefixtures("command_is_known")
def test_without_a_notebook_none_is_offered() -> None:
    cluster = ClusterDirectory("training", Path("/data"))
    assert "example" not in next_words(cluster, notebook="")
    assert "gpupool example notebook-service --name training " in next_words(
        cluster, notebook="notebook-service"
    )


@pytest.mark.usefixtures("command_is_known")
@pytest.mark.parametrize("name", ["default", "b", "a-name-as-long-as-names-of-clusters-may-be"])
@pytest.mark.parametrize("context", ["", "gpupool-a-name-as-long-as-names-of-clusters-may-be"])
def test_no_line_with_a_comment_is_wider_than_80_columns(name: str, context: str) -> None:
    words = next_words(ClusterDirectory(name, Path("/data")), context=context)
    commented = [line for line in words.splitlines() if "#" in line]
    assert len(commented) == 3
    assert max(map(len, commented)) <= 80


def test_a_comment_that_does_not_fit_stands_above_its_command() -> None:
    long = "gpupool gpu list --context " + 50 * "x"
    assert steps_words([Step("kubectl get nodes"), Step(long, "the cards")]).splitlines() == [
        "Next:",
        "  kubectl get nodes",
        "  # the cards",
        f"  {long}",
    ]


def test_a_long_kubeconfig_below_the_home_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody-with-a-long-name")
    below = ".local/state/gpupool/clusters/default"
    step = export_step(ClusterDirectory("default", Path("/home/somebody-with-a-long-name") / below))
    assert step.command == f'export KUBECONFIG="$HOME/{below}/kubeconfig"'
    other = export_step(
        ClusterDirectory("default", Path("/home/somebody-with-a-long-name-2") / below)
    )
    assert "$HOME" not in other.command


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
    assert "  .venv/bin/gpupool gpu list" in next_words(ClusterDirectory("a", Path("/data/a")))
    monkeypatch.chdir(Path(__file__).parent)
    assert f"  {tmp_path}/.venv/bin/gpupool gpu list" in next_words(
        ClusterDirectory("a", Path("/data/a"))
    )
