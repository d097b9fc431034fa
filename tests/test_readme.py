"""The five minutes of the README, as somebody who reads it would type them."""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gpupool.local.config.cluster_file import ClusterFile, parse_cluster
from gpupool.testing import Cluster
from testbed.find_kubectl import find_kubectl
from tests.e2e.kubectl import eventually

log = logging.getLogger(__name__)

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ENDLESS = ("-w", "port-forward")  # until Ctrl-C


def tour() -> Iterator[str]:
    part = README.partition("## Five minutes")[2].partition("The API server answers a write")[0]
    for block in re.findall(r"^```\n(.*?)^```", part, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith(("kubectl", "gpupool")) and not any(w in line for w in ENDLESS):
                yield line


@pytest.mark.kubectl
def test_the_five_minutes_work() -> None:
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("NO KUBECTL FOUND, so the README was not tried: set KUBECTL=path")
    commands = list(tour())
    assert len(commands) > 15
    with Cluster() as cluster:
        environment = os.environ | {
            "KUBECONFIG": str(cluster.kubeconfig),
            "GPUPOOL_HOME": str(cluster.directory.parent.parent),
            "PATH": f"{Path(sys.executable).parent}:{kubectl.parent}:{os.environ['PATH']}",
        }
        name = f"--name {cluster.directory.name}"
        first = [
            "kubectl wait --for=condition=Ready node --all",
            f"gpupool example shared-gpus {name}",  # as make up does
        ]
        for command in [*first, *commands]:
            shown = f"{command} {name}" if command.startswith("gpupool gpu fault") else command
            eventually(partial(_works, shown, environment))


def _works(command: str, environment: dict[str, str]) -> bool:
    """Whoever reads is slower than this, and would try again."""
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        log.warning("%s: %s", command, done.stderr)
    return done.returncode == 0


def test_the_cluster_file_of_the_readme_is_good() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert isinstance(parse_cluster(text), ClusterFile)
