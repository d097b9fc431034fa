"""`gpupool up --gpus real`: the cards that NVML finds on this machine are those of one node.

Where there are none, a simulated driver is this machine's: the server finds it as it would find
NVIDIA's.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import create_node
from gpupool.hardware.simdriver_cards import card_profile
from tests.e2e.gpu_cluster import M40_NODES, agents, gpu_resources
from tests.e2e.kubectl import Kubectl, eventually

pytestmark = pytest.mark.kubectl


@pytest.fixture
def kubectl(kubectl_program: Path, tmp_path: Path) -> Iterator[Kubectl]:
    driver = create_node(tmp_path / "driver", "machine", [card_profile("Tesla T4", 15109)] * 2)
    home = tmp_path / "home"
    env = os.environ | {"GPUPOOL_HOME": str(home), "LD_LIBRARY_PATH": str(driver.libraries)}
    gpupool = [sys.executable, "-m", "gpupool"]
    subprocess.run([*gpupool, "up", "--gpus", "real", "--port", "0"], env=env, check=True)
    try:
        yield Kubectl(kubectl_program, home / "clusters" / "default" / "kubeconfig", tmp_path)
    finally:
        subprocess.run([*gpupool, "down"], env=env, check=True)


def test_the_first_gpu_node_has_this_machines_cards(kubectl: Kubectl) -> None:
    first = M40_NODES[0]
    eventually(lambda: gpu_resources(kubectl) == {first: {"nvidia.com/gpu": "2"}}, within_s=30)
    assert list(agents(kubectl)) == [first]
    assert kubectl.names("no", "-l", "aliyun.accelerator/nvidia_name=Tesla-T4") == [first]
