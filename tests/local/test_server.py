"""Server processes: started detached, watched, stopped; no orphans and no wrong process hit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpupool.local import launch as launch_module
from gpupool.local.home import ClusterDirectory, Home
from gpupool.local.launch import StartFailed, launch
from gpupool.local.server_process import running_server, stop_server, wait_ready

STUB = Path(__file__).parent / "stub_server.py"


def start(home: Home, cluster: ClusterDirectory, behaviour: str = "runs") -> tuple[int, list[str]]:
    steps: list[str] = []
    port = launch(
        home,
        cluster,
        lambda report_to: [
            *(sys.executable, str(STUB), str(home.root), cluster.name, behaviour, str(report_to))
        ],
        on_step=steps.append,
    )
    return port, steps


def test_a_server_starts_detached_and_stops(home: Home, cluster: ClusterDirectory) -> None:
    _, steps = start(home, cluster)
    assert steps == ["starting the API server"]
    server = running_server(cluster)
    assert server is not None
    assert os.getsid(server.pid) != os.getsid(0)
    assert stop_server(cluster, patience_s=10)
    assert running_server(cluster) is None
    assert "cluster has stopped" in cluster.log_file.read_text()


def test_a_second_server_is_not_started(home: Home, cluster: ClusterDirectory) -> None:
    start(home, cluster)
    with pytest.raises(StartFailed):
        start(home, cluster)
    assert running_server(cluster) is not None


def test_a_server_that_does_not_stop_is_killed(home: Home, cluster: ClusterDirectory) -> None:
    start(home, cluster, "ignores stop")
    assert stop_server(cluster, patience_s=0.2)
    assert running_server(cluster) is None


def test_a_second_command_waits_for_the_first(home: Home, cluster: ClusterDirectory) -> None:
    start(home, cluster)
    server = running_server(cluster)
    assert wait_ready(cluster, patience_s=10) == server
    stop_server(cluster, patience_s=10)
    assert wait_ready(cluster, patience_s=10) is None


def test_stopping_nothing_is_fine(cluster: ClusterDirectory) -> None:
    assert not stop_server(cluster, patience_s=0)


def test_after_kill_9_nothing_runs_and_it_starts_again(
    home: Home, cluster: ClusterDirectory
) -> None:
    start(home, cluster)
    server = running_server(cluster)
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    stop_server(cluster, patience_s=10)  # waits, if the kernel is not done with it yet
    assert running_server(cluster) is None
    start(home, cluster)


def test_a_stale_process_number_is_not_trusted(cluster: ClusterDirectory) -> None:
    """The state file names our own pid, but nobody holds the lock."""
    (cluster.path / "lock").write_text(f"{os.getpid()}\n")
    cluster.write_state({"pid": os.getpid(), "port": 1})
    assert running_server(cluster) is None
    assert not stop_server(cluster, patience_s=0)


def test_the_reason_of_a_failed_start_is_shown(home: Home, cluster: ClusterDirectory) -> None:
    with pytest.raises(StartFailed, match="RuntimeError: the database is damaged"):
        start(home, cluster, "breaks")
    assert running_server(cluster) is None


def test_a_port_that_was_taken_meanwhile_is_named(home: Home, cluster: ClusterDirectory) -> None:
    with pytest.raises(StartFailed, match="cannot be used: it is in use"):
        start(home, cluster, "port in use")


def test_a_crash_shows_the_end_of_the_log(home: Home, cluster: ClusterDirectory) -> None:
    cluster.log_file.write_text("from an earlier run\n")
    with pytest.raises(StartFailed) as crash:
        start(home, cluster, "dies")
    assert "exit code 7" in str(crash.value)
    assert "about to die" in str(crash.value)
    assert "from an earlier run" not in str(crash.value)


def test_a_server_that_never_gets_ready_is_stopped(
    home: Home, cluster: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_module, "START_LIMIT_S", 2)
    with pytest.raises(StartFailed, match="not ready after 2 s"):
        start(home, cluster, "hangs")
    assert running_server(cluster) is None


def test_a_server_ends_when_its_attached_pipe_is_closed(
    home: Home, cluster: ClusterDirectory
) -> None:
    receive, send = os.pipe()
    attached, hold = os.pipe()
    arguments = [str(home.root), cluster.name, "runs", str(send), str(attached)]
    with subprocess.Popen(
        [sys.executable, str(STUB), *arguments],
        pass_fds=(send, attached),
        stderr=subprocess.DEVNULL,
    ) as server:
        os.close(send)
        os.close(attached)
        with os.fdopen(receive, "rb") as reports:
            assert b'"ready"' in reports.read()
        os.close(hold)
        assert server.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_stop_it_cleanly(
    home: Home, cluster: ClusterDirectory, number: signal.Signals
) -> None:
    receive, send = os.pipe()
    with subprocess.Popen(
        [sys.executable, str(STUB), str(home.root), cluster.name, "runs", str(send)],
        pass_fds=(send,),
        stderr=subprocess.PIPE,
    ) as server:
        os.close(send)
        with os.fdopen(receive, "rb") as reports:
            assert b'"ready"' in reports.read()
        server.send_signal(number)
        _, errors = server.communicate(timeout=60)
    assert server.returncode == 0
    assert b"Traceback" not in errors


def test_a_large_log_is_rotated(home: Home, cluster: ClusterDirectory) -> None:
    cluster.log_file.write_bytes(b"x" * (11 << 20))
    start(home, cluster)
    assert cluster.log_file.stat().st_size < 1 << 20
    assert (cluster.path / "server.log.1").stat().st_size == 11 << 20
