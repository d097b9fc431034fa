"""`gpupool top` in a terminal: its keys cordon a card, resize a pod and explain it, for real."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpupool.testing import Cluster
from tests.cli.terminal import read_until
from tests.e2e.gpu_cluster import SHARED_POOLS

pytest.importorskip("textual")
pytestmark = pytest.mark.kubectl


@contextmanager
def top(cluster: Cluster, view: str) -> Iterator[int]:
    """The terminal in which it runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    command = [sys.executable, "-m", "gpupool", "top", view, "--sort=name"]
    # Whoever loads readline leaves the size of another terminal here.
    inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [*command, "--kubeconfig", str(cluster.kubeconfig)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=inherited | {"TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(theirs)
        try:
            yield ours
        finally:
            process.kill()
            process.wait()
            os.close(ours)


def press(terminal: int, keys: bytes, then: bytes) -> bytes:
    os.write(terminal, keys)
    return read_until(terminal, then)


POD = """
apiVersion: v1
kind: Pod
metadata: {name: mine}
spec:
  nodeSelector: {cgpu.disable.isolation: "false"}
  containers:
    - name: main
      image: pause
      resources: {limits: {aliyun.com/gpu-mem: 3}}
"""


@pytest.mark.timeout(300)
def test_keys_cordon_resize_and_explain() -> None:
    with Cluster(config={"pools": list(SHARED_POOLS)}) as cluster:
        cluster.kubectl("apply", "-f", "-", stdin=POD)
        cluster.kubectl("wait", "pod/mine", "--for=condition=Ready", "--timeout=120s")
        with top(cluster, "pods") as terminal:
            read_until(terminal, b"mine")
            press(terminal, b"z", b"do nothing): ")
            assert b"3 units (3226 MiB) -> 5 units" in press(terminal, b"5\n", b"goes back. ")
            press(terminal, b"\n", b"mine")
            press(terminal, b"e", b"do not: ")
            assert b"default/mine" in press(terminal, b"\n", b"goes back. ")
            press(terminal, b"\n", b"mine")
            press(terminal, b"2", b"healthy")
            assert b"$ gpupool gpu cordon " in press(terminal, b"c", b"do not: ")
            press(terminal, b"\n", b"goes back. ")
            press(terminal, b"\x04", b"cordoned")  # Ctrl-D leads back to the screen, too
            assert b"$ gpupool gpu uncordon " in press(terminal, b"c", b"do not: ")
            press(terminal, b"no\n", b"goes back. ")  # it stays cordoned
            os.write(terminal, b"\nq")
        nodes = cluster.kubectl("get", "nodes", "-o", "yaml")
        assert nodes.count('"health":"cordoned"') == 1
