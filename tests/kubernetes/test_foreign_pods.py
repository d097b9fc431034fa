"""Manifests that people have for HAMi and KAI, unchanged, on a real kubelet: each runs with its
share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import RESOURCE_GPU_MEM
from testbed.build import BuildError
from testbed.cluster import Kubernetes
from testbed.gpu_images import write_gpu_images
from testbed.installation import NRI, Installation
from testbed.story import V100
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, allocatable, registered
from tests.kubernetes.pods import MIB_PER_CARD, UNITS_PER_CARD

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

NODE = "127.0.0.2"
MANIFESTS = Path(__file__).parent.parent / "e2e" / "foreign"


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    try:
        with Kubernetes(nodes=1, images=write_gpu_images) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NO REAL KUBERNETES: {error}", pytrace=False)


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    with Installation(kubernetes, {NODE: [V100] * 2}, injection={NODE: NRI}) as installed:
        admin("label", "node", "--all", "cgpu=true", "cgpu.disable.isolation=false")
        eventually(lambda: registered(admin), LONGEST_S)
        units = str(2 * UNITS_PER_CARD)
        eventually(lambda: allocatable(admin, NODE).get(RESOURCE_GPU_MEM) == units, LONGEST_S)
        yield installed


@pytest.mark.parametrize(
    ("file", "units", "percent"), [("hami", 3, 30), ("kai", 8, 0)], ids=["hami", "kai"]
)
def test_a_manifest_for_another_system_runs_with_its_share(
    gpupool: Installation, kubectl: Kubectl, file: str, units: int, percent: int
) -> None:
    manifest = yaml.safe_load((MANIFESTS / f"{file}.yaml").read_text())
    # There is no registry here: an image without a tag would be asked for again.
    manifest["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    kubectl.apply(manifest)
    name = manifest["metadata"]["name"]
    kubectl.wait("condition=Ready", f"pod/{name}", within_s=LONGEST_S)
    (gpus,) = pod_allocation(kubectl.json("get", "pod", name)).containers
    (share,) = gpus.shares
    mib = units * MIB_PER_CARD // UNITS_PER_CARD
    assert (share.units, share.memory_mib) == (units, mib)
    seen = kubectl("exec", name, "--", "cat", "/etc/gpupool/limits")
    assert seen.splitlines()[0] == f"{share.uuid} {mib} {percent}"
    assert share.uuid in kubectl("exec", name, "--", "nvidia-smi", "-L")
    assert f"/ {mib:>6}MiB |" in kubectl("exec", name, "--", "nvidia-smi")
