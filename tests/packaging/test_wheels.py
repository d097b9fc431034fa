"""What people install: wheels in empty environments."""

import json
from pathlib import Path

import pytest

from tools.environments import Environment, build_wheels, environment

# What only a Kubernetes stand-in needs.
ONLY_LOCAL = {"localkube", "wsproto", "jsonschema-rs", "common-expression-language"}
LOCAL_COMMANDS = tuple(
    f"gpupool.cli.{name}"
    for name in (
        "clusters",
        "down",
        "example",
        "kubeconfig",
        "machines",
        "quota",
        "reset",
        "status",
        "up",
        "which_cluster",
    )
)
IMPORT_ALL = """
import importlib, json, pkgutil, sys
import {package}
skipped = {skipped!r}
for found in pkgutil.walk_packages({package}.__path__, "{package}."):
    if not found.name.startswith(tuple(skipped)) and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
print(json.dumps(sorted(sys.modules)))
"""
USE_CLUSTER = """
from localkube import Cluster
with Cluster(nodes=2) as cluster:
    print(cluster.port > 0)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def production(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment(tmp_path_factory.mktemp("production"), wheels, "gpupool[kubernetes]")


def modules(where: Environment, package: str, *skipped: str) -> set[str]:
    script = IMPORT_ALL.format(package=package, skipped=skipped or ("-",))
    done = where.run("python", "-c", script)
    assert not done.returncode, done.stderr
    return set(json.loads(done.stdout))


def test_production_has_neither_localkube_nor_what_only_it_needs(production: Environment) -> None:
    assert not production.distributions & ONLY_LOCAL
    assert {"gpupool", "kubeclient", "numpy", "h2", "kubernetes-asyncio"} <= set(
        production.distributions
    )


def test_every_module_of_production_can_be_imported_there(production: Environment) -> None:
    # The live screen of `top` is an extra of its own.
    skipped = ("gpupool.local.", "gpupool.testing", "gpupool.cli.top_screen", *LOCAL_COMMANDS)
    loaded = modules(production, "gpupool", *skipped)
    assert {"gpupool.agent.run", "gpupool.cli.top", "gpupool.history.store"} <= loaded
    assert not {name for name in loaded if name.split(".")[0] == "localkube"}


@pytest.mark.parametrize(
    "program", ["agent", "scheduler", "extender", "admission", "console", "doctor", "gpu"]
)
def test_the_commands_of_production_start_without_localkube(
    production: Environment, program: str
) -> None:
    done = production.run("gpupool", program, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: gpupool")


@pytest.mark.parametrize("command", [["up"], ["status"], ["gpu", "fault", "n", "0", "lost"]])
def test_without_localkube_a_command_for_local_clusters_says_how_to_get_it(
    production: Environment, command: list[str]
) -> None:
    done = production.run("gpupool", *command)
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Local clusters are not installed: pip install 'gpupool[local]'.\n"
    )


def test_the_extra_brings_a_local_cluster_that_starts_and_stops(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    where = environment(tmp_path / "local", wheels, "gpupool[local]")
    assert where.distributions >= ONLY_LOCAL
    home = {"GPUPOOL_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    up = where.run("gpupool", "up", "--port", "0", **home)
    try:
        assert not up.returncode, up.stderr
        ran = where.run("gpupool", "example", "shared-gpus", **home)
        assert not ran.returncode, ran.stderr
        assert ran.stdout.count("3226MiB") == 2
    finally:
        down = where.run("gpupool", "down", **home)
    assert not down.returncode, down.stderr


def test_localkube_stands_alone(wheels: dict[str, Path], tmp_path: Path) -> None:
    where = environment(tmp_path / "alone", wheels, "localkube")
    assert "gpupool" not in where.distributions
    loaded = modules(where, "localkube")
    assert not {name for name in loaded if name.split(".")[0] == "gpupool"}
    done = where.run("python", "-c", USE_CLUSTER, HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_kubeclient_stands_alone(wheels: dict[str, Path], tmp_path: Path) -> None:
    where = environment(tmp_path / "client", wheels, "kubeclient")
    loaded = modules(where, "kubeclient")
    assert not {name for name in loaded if name.split(".")[0] in ("gpupool", "localkube")}
