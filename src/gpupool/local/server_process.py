"""The server process of a cluster: finds it, asks it, ends it.

The server holds the lock of its data directory (localkube's data_directory.py). The kernel releases
the lock when the process ends, in whatever way. So the lock, not a pid file, tells whether a server
runs: a pid file may be stale, and its number may belong to another process by now.
"""

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gpupool.local.home import ClusterDirectory, Home
from localkube.data_directory import running_pid


@dataclass(frozen=True, slots=True)
class Server:
    pid: int
    port: int  # 0 while it is starting or stopping
    is_stopping: bool = False

    @property
    def state(self) -> str:
        """In a word, without asking it."""
        if self.port:
            return "Running"
        return "Stopping" if self.is_stopping else "Starting"


def running_server(cluster: ClusterDirectory) -> Server | None:
    pid = running_pid(cluster.path)
    if pid is None:
        return None
    state = cluster.state()
    # The file may be of an earlier server: it counts only together with the pid that holds the
    # lock.
    if state.get("stopping") == pid:
        return Server(pid, 0, is_stopping=True)
    return Server(pid, state["port"] if state.get("pid") == pid else 0)


def running_clusters(home: Home) -> list[ClusterDirectory]:
    return [cluster for cluster in home.clusters() if running_server(cluster)]


def wait_ready(cluster: ClusterDirectory, *, patience_s: float) -> Server | None:
    """The server once it is ready; None when it has ended, or was not ready in time. One that is
    stopping is waited for until it has ended."""
    deadline = time.monotonic() + patience_s
    while (server := running_server(cluster)) and time.monotonic() < deadline:
        if server.port:
            return server
        time.sleep(0.02)
    return None


def stop_server(cluster: ClusterDirectory, *, patience_s: float) -> bool:
    """Asks the server to end, waits, and kills it after `patience_s`. False: none was running."""
    pid = running_pid(cluster.path)
    if pid is None:
        return False
    _signal(cluster, pid, signal.SIGTERM)
    if not _wait_gone(cluster, patience_s):
        _signal(cluster, pid, signal.SIGKILL)
        _wait_gone(cluster, patience_s)
    return True


def _signal(cluster: ClusterDirectory, pid: int, number: signal.Signals) -> None:
    """Sends the signal only if the process still holds the lock: it may have ended meanwhile, and
    its number may have been given to another process. With a pidfd that cannot happen between
    the check and the signal."""
    try:
        if hasattr(os, "pidfd_open"):
            # Opened before the check: from here on the descriptor stands for this process alone.
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
    directory: Path,
    port: int,
    path: str,
    *,
    token: str = "",
    timeout_s: float,
    wants: Collection[int] = (200,),
) -> bytes | None:
    """What a server answers to GET, trusted by its own authority; None for other statuses than
    those of `wants`.

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
        return answer.read() if answer.status in wants else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        if connection is not None:
            connection.close()
