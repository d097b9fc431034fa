"""`make kubernetes`: a real Kubernetes with the nodes of the documents, and gpupool on it.

    python -m testbed.story up       starts it in the background; prints how to reach it
    python -m testbed.story down     ends it; nothing of it stays on the machine

The nodes are: one without cards, one with an M40, one with eight P100, and two whose V100 is
shared, with and without isolation.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from gpupool.hardware.simdriver_cards import card_profile
from testbed.build import BuildError, binary_dir, cache_root
from testbed.cluster import CannotRun, Kubernetes, check
from testbed.gpu_images import write_gpu_images
from testbed.installation import Installation

PLAIN, WHOLE, OLD, SHARED, UNISOLATED = (f"127.0.0.{number}" for number in range(2, 7))
V100 = card_profile("Tesla V100-SXM2-16GB", 16130)
CARDS = {
    WHOLE: [card_profile("Tesla M40", 12209)],
    OLD: [card_profile("Tesla P100-PCIE-16GB", 16276)] * 8,
    SHARED: [V100],
    UNISOLATED: [V100],
}
POOLS = {
    SHARED: ("cgpu=true", "cgpu.disable.isolation=false"),
    UNISOLATED: ("cgpu=true", "cgpu.disable.isolation=true"),
}
_PATIENCE_S = 900.0  # the first time, programs are built
_FOLDER = cache_root() / "story"
_PID, _KUBECONFIG, _LOG = (_FOLDER / name for name in ("pid", "kubeconfig", "log"))
# A shell may eval all of it.
_HOW_TO_GO_ON = f"""\
export KUBECONFIG={_KUBECONFIG}
# A real Kubernetes with five nodes, simulated cards on four of them, and gpupool. To go on:
#   kubectl get nodes -L aliyun.accelerator/nvidia_name,cgpu    ({binary_dir()}/kubectl)
#   kubectl apply -f examples/shared-gpus.yaml
#   kubectl exec cgpu-test-0 -- nvidia-smi
#   gpupool doctor
#   make kubernetes-down"""


def label_pools(installation: Installation) -> None:
    for node, labels in POOLS.items():
        installation.kubectl("wait", "--for=create", f"node/{node}", "--timeout=120s")
        installation.kubectl("label", "node", node, *labels)


def serve() -> None:
    """Until SIGTERM. The kubeconfig is there when everything runs."""
    _PID.write_text(str(os.getpid()))
    try:
        with (
            Kubernetes(nodes=5, images=write_gpu_images) as kubernetes,
            Installation(kubernetes, CARDS, schedulers=2) as installation,
        ):
            label_pools(installation)
            _KUBECONFIG.touch(mode=0o600)
            _KUBECONFIG.write_text(kubernetes.plane.kubeconfig.read_text())
            signal.pause()
    finally:
        _KUBECONFIG.unlink(missing_ok=True)
        _PID.unlink(missing_ok=True)


def up() -> str:
    """Raises CannotRun."""
    check()
    if _running() is None:
        print(
            "Starting it takes a minute; the first time, while it is built, ten.", file=sys.stderr
        )
        _FOLDER.mkdir(parents=True, exist_ok=True)
        _KUBECONFIG.unlink(missing_ok=True)
        with _LOG.open("wb") as log:
            command = [sys.executable, "-m", "testbed.story", "serve"]
            subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        time.sleep(1.0)  # until it has written its number
    deadline = time.monotonic() + _PATIENCE_S
    while not _KUBECONFIG.exists():
        if _running() is None or time.monotonic() > deadline:
            raise CannotRun(f"it did not start:\n{_LOG.read_text()[-2000:]}")
        time.sleep(0.2)
    return _HOW_TO_GO_ON


def down() -> str:
    pid = _running()
    if pid is None:
        return "There is none."
    os.kill(pid, signal.SIGTERM)
    while _running() is not None:
        time.sleep(0.1)
    return "Ended."


def _running() -> int | None:
    """The number of the process that serves; not one that has got the same number since."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(_PID.read_text())
        if b"testbed.story" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="A real Kubernetes with GPU nodes and gpupool.")
    parser.add_argument("what", choices=("up", "down", "serve"))
    what = parser.parse_args().what
    try:
        if what == "serve":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            serve()
        else:
            print(up() if what == "up" else down())
    except (CannotRun, BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
