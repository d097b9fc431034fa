"""`up`, `down` and `reset` at the same time: whatever the order, each is told the truth."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool as main
from gpupool.local.home import Home
from gpupool.local.ports import own_port
from gpupool.local.server_process import running_server, stop_server, wait_ready
from tests.local.test_server import start

PATIENCE_S = 120
SMALL = "apiVersion: gpupool.io/v1alpha1\nkind: Cluster\npools: []\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


def gpupool(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpupool", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def starting(*arguments: str | Path) -> subprocess.Popen[bytes]:
    """`gpupool up` whose server process is there and has the lock, and is not ready."""
    command = gpupool("up", *arguments)
    errors: IO[bytes] | None = command.stderr
    assert errors is not None
    while b"Starting cluster" not in (line := errors.readline()):
        assert line, "it never began"
    return command


def said(command: subprocess.Popen[bytes]) -> tuple[int, str]:
    output, errors = command.communicate(timeout=PATIENCE_S)
    return command.returncode, (output + errors).decode()


def test_down_stops_a_cluster_that_is_starting(home: Home, small: Path) -> None:
    up = starting("--config", small, "--name", "a")
    assert "is stopped" in said(gpupool("down", "--name", "a"))[1]
    code, text = said(up)
    assert code == 1
    assert 'Cluster "a" was stopped while it was starting.' in text
    assert running_server(home.existing("a")) is None


def test_reset_deletes_a_cluster_that_is_starting(home: Home, small: Path) -> None:
    up = starting("--config", small, "--name", "a")
    assert said(gpupool("reset", "--yes", "--name", "a")) == (0, 'Cluster "a" is deleted.\n')
    code, text = said(up)
    assert code == 1
    assert 'Cluster "a" was stopped while it was starting.' in text
    assert home.clusters() == []


@pytest.mark.parametrize("runs_already", [False, True], ids=["started", "joined"])
@pytest.mark.parametrize(
    ("command", "end"),
    [(["reset", "--yes"], "was deleted"), (["down"], "was stopped")],
    ids=["reset", "down"],
)
def test_up_does_not_call_a_cluster_ready_that_has_ended_meanwhile(
    home: Home,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    end: str,
    runs_already: bool,
) -> None:
    """The command may be stopped by Ctrl-Z for hours while it waits for nodes."""
    if runs_already:
        assert said(gpupool("up", "--config", small, "--name", "a"))[0] == 0

    def end_it(*_: object, **__: object) -> None:
        assert said(gpupool(*command, "--name", "a"))[0] == 0

    monkeypatch.setattr("gpupool.local.pool_readiness.pools_as_they_come", end_it)
    result = CliRunner().invoke(main, ["up", "--config", str(small), "--name", "a"])
    assert result.exit_code == 1
    assert f'Cluster "a" {end} while this command waited for its nodes' in result.output
    assert "is ready" not in result.output
    assert "kubeconfig" not in result.output


def test_two_resets_at_once_are_both_fine(home: Home, small: Path) -> None:
    starting("--config", small, "--name", "a").communicate(timeout=PATIENCE_S)
    resets = [gpupool("reset", "--yes", "--name", "a") for _ in range(3)]
    for code, text in map(said, resets):
        assert "Traceback" not in text
        assert (code, text) == (0, 'Cluster "a" is deleted.\n') or "There is no cluster" in text
    assert home.clusters() == []


def test_a_second_up_joins_the_first(home: Home, small: Path) -> None:
    first = starting("--config", small, "--name", "a")
    second = gpupool("up", "--name", "a")
    code, text = said(second)
    assert code == 0, text
    assert 'Cluster "a" is already running.' in text
    assert said(first)[0] == 0


def test_a_second_up_starts_the_cluster_when_the_first_is_given_up(home: Home, small: Path) -> None:
    first = starting("--config", small, "--name", "a")
    second = gpupool("up", "--name", "a")
    first.send_signal(signal.SIGINT)
    said(first)
    code, text = said(second)
    assert code == 0, text
    assert wait_ready(home.existing("a"), patience_s=0.1) is not None


def test_two_names_with_one_port_start_at_once(home: Home, small: Path) -> None:
    by_port: dict[int, str] = {}
    names = (f"c{number}" for number in range(2000))
    one, other = next(
        (by_port[port], name)
        for name in names
        if by_port.setdefault(port := own_port(name), name) != name
    )
    first = starting("--config", small, "--name", one)
    second = gpupool("up", "--config", small, "--name", other)
    for command in (first, second):
        code, text = said(command)
        assert code == 0, text
    ports = [home.existing(name).state()["port"] for name in (one, other)]
    assert ports[0] != ports[1]
    # Nor does one take the port of the other while that is stopped.
    for name in (one, other):
        stop_server(home.existing(name), patience_s=30)
    assert said(gpupool("up", "--name", other))[0] == 0
    assert home.existing(other).state()["port"] == ports[1]


def test_a_cluster_that_is_stopping_is_not_taken_for_a_running_one(home: Home) -> None:
    from gpupool.local.cluster_setup import Prepared, Wish, set_up_directory

    prepared = set_up_directory(home, Wish(name="a", port=0))
    assert isinstance(prepared, Prepared)
    cluster = prepared.cluster
    start(home, cluster, "ignores stop")
    server = running_server(cluster)
    assert server is not None
    os.kill(server.pid, signal.SIGTERM)
    while not (seen := running_server(cluster)) or not seen.is_stopping:
        pass
    assert seen.port == 0
    assert wait_ready(cluster, patience_s=0.1) is None
    assert "Stopping" in said(gpupool("clusters"))[1]
    assert stop_server(cluster, patience_s=0.1)
    assert running_server(cluster) is None
