"""The plugins, run and completed by the real kubectl on a cluster with GPU nodes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from gpupool.cli import known_names
from gpupool.cli.main import gpupool
from tests.e2e.gpu_cluster import ISOLATED, gpu_cluster
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.kubectl
SHARED = Path(__file__).parent.parent.parent / "examples" / "shared-gpus.yaml"


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """With the plugins in its PATH, and two pods that share cards in the namespace `team`."""
    folder = tmp_path_factory.mktemp("plugins")
    with gpu_cluster(kubectl_program, folder) as made:
        made("create", "namespace", "team")
        made.within("team")("apply", "-f", str(SHARED))
        made.within("team").wait("condition=Ready", "pod/cgpu-test-0")
        yield made


@pytest.fixture
def plugged(kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    assert (
        CliRunner().invoke(gpupool, ["plugins", "install", "--dir", str(tmp_path)]).exit_code == 0
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return kubectl


def plugin(kubectl: Kubectl, *arguments: str, env: dict[str, str] | None = None) -> str:
    """kubectl takes no options before the name of a plugin."""
    return subprocess.run(
        [kubectl.program, *arguments],
        env=kubectl._environment() | (env or {}),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def ours(kubectl: Kubectl, *arguments: str) -> str:
    result = CliRunner().invoke(gpupool, [*arguments, "--kubeconfig", str(kubectl.kubeconfig)])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("name", ["gpushare", "cgpu"])
def test_kubectl_inspect_prints_what_gpushare_prints(plugged: Kubectl, name: str) -> None:
    for options in ([], ["-d"], ["-d", ISOLATED]):
        assert plugin(plugged, "inspect", name, *options) == ours(plugged, "inspect", *options)
    lines = plugin(plugged, "inspect", name).splitlines()
    assert lines[0].split() == ["NAME", "IPADDRESS", "GPU0(Allocated/Total)", "GPU", "Memory(GiB)"]
    assert lines[1].split() == [ISOLATED, "192.168.7.157", "3/15", "3/15"]
    assert lines[-1] == "6/30 (20%)"


def test_kubectl_gpupool_is_gpupool(plugged: Kubectl) -> None:
    assert plugin(plugged, "gpupool", "gpu", "list") == ours(plugged, "gpu", "list")


def test_kubectl_gpupool_uses_the_namespace_of_the_context(
    plugged: Kubectl, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(plugged.kubeconfig.read_bytes())
    where = {"KUBECONFIG": str(file)}
    plugin(plugged, "config", "set-context", "--current", "--namespace=team", env=where)
    said = plugin(plugged, "gpupool", "explain", "cgpu-test-0", env=where)
    assert said.startswith("team/cgpu-test-0")


def test_kubectl_completes_its_plugins(plugged: Kubectl) -> None:
    said = plugin(plugged, "__complete", "gpupool", "gpu", "unc")
    assert said.startswith("uncordon\t")
    assert "--details" in plugin(plugged, "__complete", "inspect", "cgpu", "--d")


def test_names_of_the_cluster_are_completed(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_names, "_ANSWER_LIMIT_S", 60.0)
    monkeypatch.setenv("KUBECONFIG", str(kubectl.kubeconfig))

    def names(line: str) -> list[str]:
        *before, incomplete = line.split(" ")
        asked = ShellComplete(gpupool, {}, "gpupool", "")
        return [item.value for item in asked.get_completions(before, incomplete)]

    assert names("gpu cordon cn-shanghai.192.168.7.157") == [ISOLATED]
    assert names(f"gpu cordon {ISOLATED} ") == ["0"]
    assert names("gpu pods -n te") == ["team"]
    assert names("explain -n team cgpu-test-0") == ["cgpu-test-0"]
    assert names("resize cgpu-test-0 -n team -c ") == ["cgpu-test"]
    assert names("open -n default kube") == ["kubernetes"]
    assert names("explain -n team no-such-pod") == []


def test_a_context_completes_from_the_kubeconfig(kubectl: Kubectl) -> None:
    context = click.Context(gpupool)
    context.params["kubeconfig"] = str(kubectl.kubeconfig)
    found = known_names.contexts(context, gpupool.params[0], "")
    assert [item.value for item in found] == [kubectl("config", "current-context").strip()]
