"""Which local cluster a command is about, and what is said of one that does not run."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from gpupool.cli import notebook
from gpupool.cli.main import gpupool
from gpupool.local.cluster_setup import Prepared, Wish, set_up_directory
from gpupool.local.home import ClusterDirectory, Home
from localkube.data_directory import Lock
from tests.cli.commands import every_command

# A port that nothing listens on: only root may, and nobody does.
SILENT_PORT = 1
# One of each command that acts on one local cluster, and of each that asks an API server.
FAULT = "gpu fault node 0 lost"
OF_A_LOCAL_CLUSTER = ("down", "status", "reset --yes", "kubeconfig", "example notebook", FAULT)
OF_ANY_CLUSTER = (
    "gpu list",
    "gpu list --watch",
    "gpu pods",
    "gpu cordon node 0",
    "gpu uncordon node 0",
    "open web",
    "explain pod",
    "explain pod --watch",
    "inspect",
    "resize pod --gpu-mem 3",
    "doctor",
    "console --port 0",
)


def run(line: str, *arguments: str) -> Result:
    return CliRunner().invoke(gpupool, [*line.split(), *arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def nothing_named(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no cluster."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def made(home: Home, name: str, port: int = SILENT_PORT) -> ClusterDirectory:
    """A cluster that has run, and is stopped."""
    prepared = set_up_directory(home, Wish(name=name, port=0))
    assert isinstance(prepared, Prepared)
    cluster = prepared.cluster
    cluster.kubeconfig.write_text(kubeconfig(f"gpupool-{name}", port))
    cluster.write_state({"pid": 1, "port": port})
    return cluster


def kubeconfig(context: str, port: int) -> str:
    server = {"server": f"https://127.0.0.1:{port}"}
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": server}],
            "contexts": [{"name": context, "context": {"cluster": "c"}}],
            "current-context": context,
        }
    )


@contextmanager
def running(*clusters: ClusterDirectory) -> Iterator[None]:
    locks = [Lock(cluster.path) for cluster in clusters]
    try:
        yield
    finally:
        for lock in locks:
            lock.close()


@pytest.mark.parametrize("line", [*OF_A_LOCAL_CLUSTER, *OF_ANY_CLUSTER])
def test_of_several_running_clusters_none_is_guessed(home: Home, line: str) -> None:
    with running(made(home, "default"), made(home, "b")):
        result = run(line)
    assert result.exit_code == 1
    assert result.output == (
        "Error: Several clusters run on this machine: b, default. Choose one with --name, or for "
        "all commands with KUBECONFIG.\n"
    )
    assert [cluster.name for cluster in home.clusters()] == ["b", "default"]


@pytest.mark.parametrize("line", [*OF_A_LOCAL_CLUSTER, *OF_ANY_CLUSTER])
def test_of_several_stopped_clusters_none_is_guessed(home: Home, line: str) -> None:
    made(home, "default"), made(home, "b")
    assert run(line).output == (
        "Error: Several clusters are on this machine, and none runs: b, default. Choose one with "
        "--name, or start one: gpupool up --name b\n"
    )


@pytest.mark.parametrize("line", OF_ANY_CLUSTER)
@pytest.mark.parametrize("way", ["the only one", "--name", "--kubeconfig", "KUBECONFIG", "context"])
def test_a_stopped_cluster_is_named_with_the_command_that_starts_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, way: str
) -> None:
    cluster = made(home, "b")
    options = {"--name": "b", "--kubeconfig": str(cluster.kubeconfig)}
    if way == "KUBECONFIG":
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    if way == "context":
        (tmp_path / ".kube").mkdir()
        shutil.copy(cluster.kubeconfig, tmp_path / ".kube" / "config")
    result = run(line, *([way, options[way]] if way in options else []))
    assert result.exit_code == 1
    assert result.output == ('Error: Cluster "b" is stopped. Start it: gpupool up --name b\n')


def test_jupyter_is_not_installed_for_a_stopped_cluster(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(home, "b")
    monkeypatch.setattr(notebook, "install_jupyter", lambda: pytest.fail("installs 150 MB"))
    said = run("example notebook").output
    assert said == 'Error: Cluster "b" is stopped. Start it: gpupool up --name b\n'


def test_the_default_cluster_is_started_without_a_name(home: Home) -> None:
    made(home, "default")
    assert run("gpu list").output.endswith(" Start it: gpupool up\n")


def test_a_cluster_that_starts_is_not_called_stopped(home: Home) -> None:
    cluster = made(home, "b")
    with running(cluster):  # and nothing in its state says yet that it is ready
        said = run("gpu list").output
    assert said == 'Error: Cluster "b" is starting. Wait until it runs: gpupool up --name b\n'


def test_a_running_cluster_that_does_not_answer_is_not_called_stopped(home: Home) -> None:
    cluster = made(home, "b")
    with running(cluster):
        cluster.write_state({"pid": int((cluster.path / "lock").read_text()), "port": 1})
        assert "nothing answers at 127.0.0.1:1 (Connection refused)" in run("gpu list").output


@pytest.mark.parametrize("way", ["--kubeconfig", "KUBECONFIG"])
def test_the_kubeconfig_of_a_cluster_that_is_gone_names_the_cluster(
    home: Home, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    cluster = made(home, "b")
    run("reset --name b --yes")
    if way == "KUBECONFIG":
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    given = ["--kubeconfig", str(cluster.kubeconfig)] if way == "--kubeconfig" else []
    assert run("gpu list", *given).output == (
        'Error: Cluster "b" does not exist. Make it with: gpupool up --name b\n'
    )


def test_a_cluster_that_never_ran_says_how_to_start_it(home: Home) -> None:
    made(home, "b").kubeconfig.unlink()
    words = 'Error: Cluster "b" is stopped. Start it: gpupool up --name b'
    assert run("gpu list").output == f"{words}\n"
    assert run("gpu list --name b").output == f"{words}\n"


def test_the_status_of_a_stopped_cluster_says_how_to_start_it(home: Home) -> None:
    made(home, "b")
    assert "Start it:    gpupool up --name b\n" in run("status").output


@pytest.mark.parametrize("way", ["KUBECONFIG", "context"])
def test_of_two_clusters_the_one_is_meant_that_the_environment_names(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    default, b = made(home, "default", 2), made(home, "b")
    if way == "KUBECONFIG":
        monkeypatch.setenv("KUBECONFIG", str(b.kubeconfig))
    else:
        (tmp_path / ".kube").mkdir()
        shutil.copy(b.kubeconfig, tmp_path / ".kube" / "config")
    with running(default, b):
        assert "Name:        b\n" in run("status").output


def test_a_context_of_another_home_with_the_same_name_is_not_meant(
    home: Home, tmp_path: Path
) -> None:
    default, b = made(home, "default", 2), made(home, "b", 3)
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(kubeconfig("gpupool-b", 4))
    with running(default, b):
        assert "Several clusters run on this machine: b, default." in run("status").output


def test_all_clusters_can_be_stopped_while_several_run(home: Home) -> None:
    made(home, "default"), made(home, "b")
    assert run("down --all").output == (
        'Cluster "b" is not running.\nCluster "default" is not running.\n'
    )
    assert run("down --all --name b").exit_code == 2


def test_reset_takes_the_one_that_runs_and_not_the_default(home: Home) -> None:
    made(home, "default")
    with running(made(home, "b")):
        asked = CliRunner().invoke(gpupool, ["reset"], input="n\n")
    assert asked.output.startswith('Delete cluster "b" and all of ')


def test_the_examples_are_listed_whatever_runs(home: Home) -> None:
    with running(made(home, "default"), made(home, "b")):
        assert "shared-gpus" in run("example").output


def test_an_unknown_name_is_refused_by_every_command(home: Home) -> None:
    made(home, "b")
    assert run("gpu list --name x").output == (
        'Error: There is no cluster "x". Clusters here: b. Make it with: gpupool up --name x\n'
    )


@pytest.mark.parametrize("other", ["--kubeconfig", "--context"])
def test_a_name_goes_alone(home: Home, other: str) -> None:
    made(home, "b")
    result = run("gpu list --name b", other, "x")
    assert result.exit_code == 2
    assert "--name chooses the cluster alone, without --kubeconfig and --context." in result.output


def test_every_command_that_asks_a_cluster_takes_its_name() -> None:
    for path, command in every_command():
        options = {name for each in command.params for name in each.opts}
        if "--kubeconfig" in options:
            assert "--name" in options, path
            assert isinstance(command, click.Command)
