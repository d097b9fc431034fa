"""The commands as people type them."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpupool import __version__
from gpupool.cli.main import COMMANDS, gpupool
from gpupool.local.home import ClusterDirectory, Home
from localkube.data_directory import Lock


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(gpupool, arguments, input=stdin, catch_exceptions=False)


def test_help_lists_every_command_and_says_the_same_as_the_command() -> None:
    listed = run("--help").output
    for name, words in COMMANDS.items():
        assert f"  {name} " in listed
        assert words in " ".join(listed.split())
        assert words.removesuffix(".") in run(name, "--help").output.replace("\n  ", " ")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from gpupool.cli.main import gpupool\n"
        "try: gpupool(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'yaml', 'msgspec', 'cryptography', 'asyncio', 'jsonschema_rs'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_version() -> None:
    assert run("version").output == f"gpupool {__version__}\n"


def test_an_unknown_command_is_refused() -> None:
    result = run("upp")
    assert result.exit_code == 2
    assert "No such command 'upp'" in result.output


@pytest.mark.parametrize("command", ["down", "status", "kubeconfig", "reset"])
def test_an_unknown_cluster_is_refused(home: Home, command: str) -> None:
    result = run(command, "--name", "x")
    assert result.exit_code == 1
    assert result.output == (
        'Error: There is no cluster "x". Clusters here: none. Make it with: gpupool up --name x\n'
    )


def test_clusters_are_listed(home: Home, cluster: ClusterDirectory) -> None:
    assert run("clusters").output == (
        f"NAME   STATE     API SERVER   DATA\na      Stopped   <none>       {cluster.path}\n"
    )


def test_a_running_and_a_starting_cluster_are_told_apart(
    home: Home, cluster: ClusterDirectory
) -> None:
    with Lock(cluster.path):
        assert "Starting" in run("clusters").output
        cluster.write_state({"pid": int((cluster.path / "lock").read_text()), "port": 1234})
        assert "Running   https://127.0.0.1:1234" in run("clusters").output


def test_without_a_name_the_cluster_that_runs_is_meant(
    home: Home, cluster: ClusterDirectory
) -> None:
    with Lock(cluster.path):
        cluster.write_state({"pid": int((cluster.path / "lock").read_text()), "port": 1})
        assert "Name:        a\n" in run("status").output


def test_no_clusters_say_how_to_make_one(home: Home) -> None:
    assert run("clusters").output == "There is no cluster yet. Make one: gpupool up\n"


def test_the_status_of_a_stopped_cluster(home: Home, cluster: ClusterDirectory) -> None:
    result = run("status", "--name", "a")
    assert result.exit_code == 3
    assert "State:       Stopped\n" in result.output
    assert f"Data:        {cluster.path}\n" in result.output


def test_a_server_that_does_not_answer_is_shown(home: Home, cluster: ClusterDirectory) -> None:
    with Lock(cluster.path):
        cluster.write_state({"pid": int((cluster.path / "lock").read_text()), "port": 1})
        result = run("status", "--name", "a")
    assert result.exit_code == 3
    assert "State:       NotAnswering\n" in result.output


def test_down_twice_is_fine(home: Home, cluster: ClusterDirectory) -> None:
    result = run("down", "--name", "a")
    assert result.exit_code == 0
    assert result.output == 'Cluster "a" is not running.\n'
    assert run("down", "--all").exit_code == 0


def test_the_kubeconfig_is_printed(home: Home, cluster: ClusterDirectory) -> None:
    assert "Start it: gpupool up --name a\n" in run("kubeconfig", "--name", "a").output
    cluster.kubeconfig.write_text("kind: Config\n")
    assert run("kubeconfig", "--name", "a").output == "kind: Config\n"


def test_reset_asks_first(home: Home, cluster: ClusterDirectory) -> None:
    assert run("reset", "--name", "a", stdin="n\n").exit_code == 1
    nobody = run("reset", "--name", "a", stdin="")
    assert nobody.exit_code == 1
    assert "Nobody answered, so nothing is deleted. Say it with: gpupool reset --name a --yes" in (
        nobody.output
    )
    assert cluster.path.is_dir()
    assert run("reset", "--name", "a", stdin="y\n").exit_code == 0
    assert not cluster.path.exists()


def test_reset_with_yes_does_not_ask(home: Home, cluster: ClusterDirectory) -> None:
    assert run("reset", "--name", "a", "--yes").output == 'Cluster "a" is deleted.\n'


def test_quotas_are_shown_and_set(home: Home, cluster: ClusterDirectory) -> None:
    assert run("quota").output == (
        "QUOTA                LIMIT   DEFAULT   USED\n"
        "clusters             5       5         1\n"
        "nodes-per-cluster    40      40        per cluster\n"
        "routes-per-cluster   48      48        per cluster\n"
        "security-groups      100     100       1\n"
        "load-balancers       60      60        2\n"
        "eips                 20      20        1\n"
    )
    result = run("quota", "set", "nodes-per-cluster=100", "clusters=9")
    assert result.output == "nodes-per-cluster is now 100.\nclusters is now 9.\n"
    assert "nodes-per-cluster    100     40" in run("quota").output


def test_one_bad_quota_changes_none(home: Home) -> None:
    result = run("quota", "set", "clusters=9", "nodes=1")
    assert result.exit_code == 1
    assert result.output.startswith('Error: there is no quota "nodes"')
    assert home.quota_changes() == {}


def test_up_says_when_it_is_already_running(home: Home, cluster: ClusterDirectory) -> None:
    with Lock(cluster.path):
        cluster.write_state({"pid": int((cluster.path / "lock").read_text()), "port": 1234})
        result = run("up", "--name", "a", "--port", "99")
    assert result.exit_code == 0
    assert 'Cluster "a" is already running.\n' in result.output
    assert "--config, --gpus, --port and --sandbox take effect after: gpupool down" in result.output
    assert f"export KUBECONFIG={cluster.kubeconfig}\n" in result.output


def test_up_with_a_bad_file_shows_every_problem(home: Home, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("kind: Cluster\npools: 3\n")
    result = run("up", "--config", str(tmp_path / "c.yaml"))
    assert result.exit_code == 1
    assert "c.yaml:2:8: pools: wanted a list, found 3\n" in result.output
    assert home.clusters() == []


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_up_with_a_bad_port(home: Home, port: str) -> None:
    assert run("up", "--port", port).exit_code == 2


def test_the_version_is_an_option_too() -> None:
    assert run("--version").output == run("version").output


def test_a_misspelt_command_gets_a_suggestion() -> None:
    result = run("stauts")
    assert result.exit_code == 2
    assert "status" in result.output.splitlines()[-1]


def test_machines_are_added_listed_and_removed(home: Home) -> None:
    assert "No machine has been added." in run("machines").output
    assert run("machines", "add", "ecs.gn5-c4g1.xlarge", "--count", "2").output == (
        'Machine "machine-1" is added.\nMachine "machine-2" is added.\n'
    )
    assert run("machines", "add", "ecs.g6.large", "small").exit_code == 0
    assert run("machines").output == (
        "NAME        INSTANCE TYPE         CARDS                      STATE   CLUSTER   NODE POOL\n"
        "machine-1   ecs.gn5-c4g1.xlarge   1 x Tesla P100-PCIE-16GB   Free    <none>    <none>\n"
        "machine-2   ecs.gn5-c4g1.xlarge   1 x Tesla P100-PCIE-16GB   Free    <none>    <none>\n"
        "small       ecs.g6.large          <none>                     Free    <none>    <none>\n"
    )
    assert run("machines", "remove", "machine-1", "small").exit_code == 0
    assert run("machines", "-o", "name").output == "machine-2\n"
