"""`gpupool gpu` and `gpupool agent`, as processes, against an API server on a real socket."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpupool.cli.main import gpupool
from gpupool.hardware.simdriver import NodeFiles, create_node
from gpupool.hardware.simdriver_cards import card_profile
from gpupool.hardware.simdriver_state import Driver, NotBuilt, card_uuid, new_state
from localkube.kubelet.node_files import node_hardware
from tests.cli.kubeconfigs import written
from tests.conformance.api_server import api_server

NODE = "node-1"
CARD = card_profile("Tesla M40", 12209)
LIMIT_S = 30


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "api"
    data.mkdir()
    with api_server(data) as address:
        yield written(tmp_path / "kubeconfig", address)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The simulated driver of a node in a local cluster."""
    home = tmp_path / "home"
    cluster = home / "clusters" / "default"
    files = NodeFiles(node_hardware(cluster / "pods", NODE))
    files.directory.mkdir(parents=True)
    (cluster / ".gpupool").write_text("1\n")
    files.state.write_bytes(bytes(new_state(NODE, [CARD, CARD], Driver())))
    monkeypatch.setenv("GPUPOOL_HOME", str(home))
    return files.state


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(gpupool, [str(argument) for argument in arguments])


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


@contextlib.contextmanager
def agent(kubeconfig: Path, state: Path, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "gpupool", "agent", "--kubeconfig", str(kubeconfig)]
    command += ["--simulated", str(state), "--plugins", str(directory), "--way", "runtime"]
    with subprocess.Popen(command, env={**os.environ, "NODE_NAME": NODE}) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0


def make_node(kubeconfig: Path) -> None:
    from gpupool.cli.programs import ask_cluster
    from kubeclient.client import Kube
    from kubeclient.resources import NODES

    async def create(kube: Kube) -> None:
        await kube.create(NODES, {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE}})

    ask_cluster(create, kubeconfig=str(kubeconfig))


def test_cards_are_listed_cordoned_broken_and_recovered(
    kubeconfig: Path, state: Path, tmp_path: Path
) -> None:
    make_node(kubeconfig)
    where = ("--kubeconfig", kubeconfig)
    (state.parents[3] / "kubeconfig").write_bytes(kubeconfig.read_bytes())
    assert "No agent has reported any card." in run("gpu", "list", *where).output

    def lists(*words: str) -> bool:
        lines = run("gpu", "list", NODE, *where).stdout.splitlines()
        return any(all(word in line for word in words) for line in lines)

    with agent(kubeconfig, state, tmp_path):
        wait_for(lambda: lists(NODE, "0", "Tesla M40", "12209MiB", "healthy", card_uuid(NODE, 0)))

        assert run("gpu", "cordon", NODE, "1", "--reason", "loud fan", *where).exit_code == 0
        wait_for(lambda: lists(card_uuid(NODE, 1), "cordoned", "loud fan"))
        assert run("gpu", "uncordon", NODE, card_uuid(NODE, 1)[:12], *where).exit_code == 0
        wait_for(lambda: not lists("cordoned"))

        assert run("gpu", "fault", NODE, "0", "xid=48").stdout == (
            f"Card 0 of {NODE}: the driver reports XID 48 "
            "(memory error that could not be corrected).\n"
            f"Repair: gpupool gpu fault {NODE} 0 recover\n"
        )
        wait_for(lambda: lists(card_uuid(NODE, 0), "unhealthy", "XID 48"))
        assert run("gpu", "fault", NODE, "0", "recover").exit_code == 0
        wait_for(lambda: not lists("unhealthy"))

        unknown = run("gpu", "cordon", NODE, "7", *where)
        assert f'Card "7" of node {NODE} does not exist. Its cards: 0 (GPU-' in unknown.output
        unclear = run("gpu", "cordon", NODE, "GPU", *where)
        assert "does not exist" in unclear.output
    missing = run("gpu", "cordon", "node-2", "0", *where)
    assert 'nodes "node-2" not found' in missing.output
    assert missing.exit_code == 1


def test_a_node_that_does_not_exist_is_named_when_its_pods_are_listed(kubeconfig: Path) -> None:
    make_node(kubeconfig)
    where = ("--kubeconfig", kubeconfig)
    assert "No pod has a card.\n" in run("gpu", "pods", *where).output
    assert f"No pod has a card on node {NODE}.\n" in run("gpu", "pods", NODE, *where).output
    missing = run("gpu", "pods", "node-2", *where)
    assert missing.exit_code == 1
    assert missing.output.startswith('Error: nodes "node-2" not found. See which there are: ')
    assert run("gpu", "list", NODE, *where).output.startswith(
        f"Error: No agent has reported any card of node {NODE}. See whether an agent runs: "
    )


def test_the_agent_finds_the_cards_through_nvml(kubeconfig: Path, tmp_path: Path) -> None:
    try:
        files = create_node(tmp_path / "driver", NODE, [CARD])
    except NotBuilt as error:
        pytest.skip(str(error))
    make_node(kubeconfig)
    command = [sys.executable, "-m", "gpupool", "agent", "--kubeconfig", str(kubeconfig)]
    command += ["--node", NODE, "--plugins", str(tmp_path)]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(files.libraries)}
    with subprocess.Popen(command, env=environment) as process:
        try:
            where = ("--kubeconfig", kubeconfig)
            wait_for(lambda: card_uuid(NODE, 0) in run("gpu", "list", *where).output)
        finally:
            process.terminate()
            assert process.wait(LIMIT_S) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((NODE, "0", "broken"), '"broken" is no fault'),
        ((NODE, "9", "lost"), "there is no card 9"),
        (("node-2", "0", "lost"), 'Node "node-2" of cluster "default" has no simulated cards.'),
    ],
)
def test_impossible_faults_are_refused_with_a_message(
    state: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    result = run("gpu", "fault", *arguments)
    assert complaint in result.output
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--memory-unit", "3KB", "wanted GiB, MiB, or a multiple such as 256MiB"),
        ("--mount", "/only/one", "wanted /on/the/node:/in/the/container"),
        ("--xid-policy", "/no/such/file", "found: No such file"),
        ("--kubeconfig", "/no/such/file", "There is no kubeconfig at /no/such/file"),
    ],
)
def test_bad_options_of_the_agent_are_refused_with_a_message(
    option: str, value: str, complaint: str
) -> None:
    result = run("agent", "--node", NODE, option, value)
    assert complaint in result.output.replace("\n", " ")
    assert result.exit_code in (1, 2)


def test_the_agent_requires_the_name_of_its_node() -> None:
    assert "Missing option '--node'" in run("agent").output
