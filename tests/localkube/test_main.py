"""`python -m localkube`, as people run it."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "localkube")
PATIENCE_S = 60


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_how_to_reach_it_and_stops_cleanly_on_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    directory = tmp_path / "data"
    command = [*COMMAND, "--nodes", "2", "--directory", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
    assert re.fullmatch(r"Kubernetes v\S+ answers at https://127\.0\.0\.1:\d+\n", said[0])
    assert said[1] == f"  export KUBECONFIG={directory}/kubeconfig\n"
    assert (directory / "kubeconfig").exists()
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_port_in_use_and_a_directory_in_use_are_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--port", str(port))
    assert done.returncode == 1
    assert f"Address already in use: 'port {port} of 127.0.0.1'" in done.stderr
    assert done.stderr.startswith("localkube: ")
    assert done.stderr.count("\n") == 1
    os.symlink(tmp_path, tmp_path / "link")
    done = run("--directory", str(tmp_path / "link"))
    assert done.returncode == 1
    assert "symbolic link" in done.stderr
