"""The five minutes of the README, as somebody who reads it would type them."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.localcluster.config.cluster_file import ClusterFile, parse_cluster
from gpupool.testing import Cluster
from testbed.find_kubectl import find_kubectl

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def tour() -> Iterator[str]:
    part = README.partition("## Five minutes")[2].partition("## State")[0]
    for block in re.findall(r"^```\n(.*?)^```", part, re.DOTALL | re.MULTILINE):
        yield from (line for line in block.splitlines() if line.startswith("kubectl"))


@pytest.mark.kubectl
def test_the_five_minutes_work() -> None:
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("NO KUBECTL FOUND, so the README was not tried: set KUBECTL=path")
    commands = list(tour())
    assert len(commands) > 8
    with Cluster() as cluster:
        environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)}
        wait = "kubectl wait --for=condition=Ready node --all"
        for command in [wait, *(each for each in commands if not each.endswith(" -w"))]:
            words = [str(kubectl), *command.split()[1:]]
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, check=False, timeout=60
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"


def test_the_cluster_file_of_the_readme_is_good() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert isinstance(parse_cluster(text), ClusterFile)
