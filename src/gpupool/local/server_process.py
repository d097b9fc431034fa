"""The server process of a cluster: is there one, and how to end it.

The server holds the lock of its data directory (data_directory.py). The kernel lets go of it when
the process ends, however it ends: so there are no stale pid files, and no stranger's process that
got the same number is ever taken for ours.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from gpupool.local.home import ClusterDirectory
from localkube.data_directory import running_pid


@dataclass(frozen=True, slots=True)
class Server:
    pid: int
    port: int  # 0 while it is starting


def running_server(cluster: ClusterDirectory) -> Server | None:
    pid = running_pid(cluster.path)
    if pid is None:
        return None
    state = cluster.state()
    return Server(pid, state["port"] if state.get("pid") == pid else 0)


def wait_ready(cluster: ClusterDirectory, *, patience_s: float) -> Server | None:
    """The server once it answers; None when it ended, or took longer than that."""
    deadline = time.monotonic() + patience_s
    while (server := running_server(cluster)) and time.monotonic() < deadline:
        if server.port:
            return server
        time.sleep(0.02)
    return None


def stop_server(cluster: ClusterDirectory, *, patience_s: float) -> bool:
    """Ask the server to end, wait, and end it by force after `patience_s`. False: none ran."""
    pid = running_pid(cluster.path)
    if pid is None:
        return False
    _signal(cluster, pid, signal.SIGTERM)
    if not _wait_gone(cluster, patience_s):
        _signal(cluster, pid, signal.SIGKILL)
        _wait_gone(cluster, patience_s)
    return True


def _signal(cluster: ClusterDirectory, pid: int, number: signal.Signals) -> None:
    """Only to the process that holds the lock: by now the number may be somebody else's."""
    try:
        if hasattr(os, "pidfd_open"):
            process = os.pidfd_open(pid)
            try:
                if running_pid(cluster.path) == pid:
                    signal.pidfd_send_signal(process, number)
            finally:
                os.close(process)
        elif running_pid(cluster.path) == pid:
            os.kill(pid, number)
    except ProcessLookupError:
        return


def _wait_gone(cluster: ClusterDirectory, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while running_pid(cluster.path) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def ask_server(
    directory: Path, port: int, path: str, *, token: str = "", timeout_s: float
) -> bytes | None:
    """What a server answers to GET, trusted by its own authority; None for anything but 200.

    `directory` is the cluster's. For commands that ask one question: a client with its event loop
    would take longer to load than to answer.
    """
    import http.client
    import ssl

    connection = None
    try:
        trust = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=timeout_s, context=trust
        )
        connection.request(
            "GET", path, headers={"Authorization": f"Bearer {token}"} if token else {}
        )
        answer = connection.getresponse()
        return answer.read() if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        if connection is not None:
            connection.close()
