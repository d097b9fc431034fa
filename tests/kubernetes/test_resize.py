"""A share that grows and shrinks on a real kubelet, which writes the limit file in its own time."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool as command
from gpupool.contract.names import RESOURCE_GPU_MEM
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, SHARED, nodes_with
from tests.kubernetes.pods import gpu_pod

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]


def test_a_share_grows_and_shrinks_while_its_container_runs(
    kubectl: Kubectl, kubeconfig: Path
) -> None:
    def resize(units: int) -> str:
        words = ["resize", "share", "--gpu-mem", str(units), "--namespace", kubectl.namespace]
        where = ["--kubeconfig", str(kubeconfig), "--timeout", "120"]
        return CliRunner().invoke(command, [*words, *where]).output

    def limit() -> str:
        return kubectl("exec", "share", "--", "cat", "/etc/gpupool/limits").split()[1]

    nodes_with(kubectl, SHARED)
    place = {"nodeSelector": {"cgpu.disable.isolation": "false"}}
    kubectl.apply(gpu_pod("share", RESOURCE_GPU_MEM, 3, **place))
    kubectl.wait("condition=Ready", "pod/share", within_s=80)
    assert "3 units (3226 MiB) -> 6 units (6452 MiB)" in resize(6)
    eventually(lambda: limit() == "6452", LONGEST_S)
    assert "6 units (6452 MiB) -> 2 units (2150 MiB)" in resize(2)
    assert limit() == "2150"
    assert kubectl.field(".status.containerStatuses[0].restartCount", "pod", "share") == "0"
