"""`gpupool up` and `down` as people run them: a process, a cluster, a kubeconfig."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest
import yaml

from gpupool.local.home import Home
from gpupool.local.server_process import running_server


def gpupool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "gpupool", *arguments])


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_up_status_down_and_up_again(home: Home) -> None:
    started = gpupool("up", "--port", "0")
    assert started.returncode == 0, started.stderr
    assert re.search(r'Cluster "default" is ready after \d+\.\d s\.', started.stdout)
    cluster = home.existing("default")
    assert f"export KUBECONFIG={cluster.kubeconfig}\n" in started.stdout
    config = yaml.safe_load(cluster.kubeconfig.read_text())

    status = gpupool("status")
    assert status.returncode == 0, status.stdout
    assert "State:       Running\n" in status.stdout
    assert gpupool("up").stdout.startswith('Cluster "default" is already running.\n')
    assert gpupool("kubeconfig").stdout == cluster.kubeconfig.read_text()

    assert gpupool("down").returncode == 0
    assert running_server(cluster) is None
    assert gpupool("status").returncode == 3

    assert gpupool("up").returncode == 0
    assert yaml.safe_load(cluster.kubeconfig.read_text()) == config  # port and token are kept
    assert gpupool("reset", "--yes").returncode == 0
    assert not cluster.path.exists()


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a card")
@pytest.mark.parametrize("more", [[], ["--foreground"]])
def test_real_gpus_are_refused_where_there_are_none(home: Home, more: list[str]) -> None:
    refused = gpupool("up", "--gpus", "real", "--port", "0", *more)
    assert refused.returncode == 1
    assert "wants an NVIDIA card in this machine, but there is no NVIDIA driver" in refused.stderr
    assert home.clusters() == []


def test_up_says_how_many_nodes_are_ready_and_what_to_do_next(home: Home) -> None:
    started = gpupool("up", "--port", "0")
    assert "8 of 8 nodes are ready." in started.stdout
    assert "gpu list" in started.stdout
    assert "console" in started.stdout
    assert gpupool("reset", "--yes").returncode == 0


def test_in_the_foreground_ctrl_c_stops_it_cleanly(home: Home) -> None:
    command = [sys.executable, "-m", "gpupool", "up", "--foreground", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == 'Cluster "default" is ready; Ctrl-C stops it.\n'
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "Traceback" not in errors
    assert running_server(home.existing("default")) is None


def test_ctrl_c_while_it_starts_leaves_nothing_running(home: Home) -> None:
    command = [sys.executable, "-m", "gpupool", "up", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as starting:
        assert starting.stderr is not None
        assert starting.stderr.readline() == 'Starting cluster "default" ...\n'
        starting.send_signal(signal.SIGINT)
        starting.communicate(timeout=60)
    assert starting.returncode == 130
    assert running_server(home.existing("default")) is None


def test_several_clusters_run_at_a_time(home: Home) -> None:
    for name in ("a", "b"):
        assert gpupool("up", "--name", name, "--port", "0").returncode == 0
    listed = gpupool("clusters").stdout
    assert listed.count("Running") == 2
    assert gpupool("down", "--all").returncode == 0
    assert gpupool("clusters").stdout.count("Stopped") == 2
