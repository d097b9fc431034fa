"""A real Kubernetes with real kubelets, and gpupool on it. Run by `make test-kubernetes` alone.

It needs root, and Go where the programs are not built yet; without them nothing of this is tested,
and that is said as a failure, since whoever asks for these tests wants them.

KUBECONFIG names another cluster, with gpupool on it: then the tests that need no more than a client
run there, in namespaces of their own. What kills kubelets, or wants nodes that are not there, is
skipped. GPUPOOL_TEST_IMAGE is what its pods run: any image with a shell and the C library.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpupool.contract.names import RESOURCE_GPU_MEM
from testbed.build import BuildError
from testbed.cluster import CannotRun, Kubernetes, check
from testbed.controlplane import Way
from testbed.find_kubectl import ensure_kubectl
from testbed.gpu_images import write_gpu_images
from testbed.installation import Installation
from testbed.story import CARDS, V100, label_pools
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.pods import UNITS_PER_CARD

LONGEST_S = 120.0  # for anything; the machine may be busy with other things
_SETTLED_S = 600.0  # an installation behind a faulty proxy, say
ELSEWHERE = os.environ.get("KUBECONFIG", "")
PLAIN = "!aliyun.accelerator/nvidia_name"
WHOLE = "aliyun.accelerator/nvidia_name=Tesla-M40"
MANY_WHOLE = "aliyun.accelerator/nvidia_count=8,!cgpu"
SHARED = "cgpu.disable.isolation=false,aliyun.accelerator/nvidia_mem=16130MiB"
UNISOLATED = "cgpu.disable.isolation=true,aliyun.accelerator/nvidia_mem=16130MiB"


def pytest_report_header(config: pytest.Config) -> str:
    asked = "kubernetes" in config.getoption("-m")
    return f"kubernetes: the cluster of KUBECONFIG={ELSEWHERE}" if asked and ELSEWHERE else ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only who says so starts kubelets as root."""
    if "kubernetes" not in config.getoption("-m"):
        skip = pytest.mark.skip(reason="a real Kubernetes is started by `make test-kubernetes`")
        for item in items:
            if item.get_closest_marker("kubernetes"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def able() -> None:
    """To start kubelets here, and to kill them."""
    if ELSEWHERE:
        pytest.skip("needs kubelets or programs of its own; KUBECONFIG names another cluster")
    try:
        check()
    except CannotRun as error:
        pytest.fail(f"NO REAL KUBERNETES: nothing of it was tested: {error}", pytrace=False)


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    program = ensure_kubectl()
    if program is None:
        pytest.fail("NO KUBECTL: wanted one, or Go to build it; found neither", pytrace=False)
    return program


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    try:
        with Kubernetes(nodes=5, images=write_gpu_images) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NO REAL KUBERNETES: {error}", pytrace=False)


@pytest.fixture(scope="module")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    if ELSEWHERE:
        return Path(ELSEWHERE).absolute()
    kubernetes: Kubernetes = request.getfixturevalue("kubernetes")
    return kubernetes.plane.kubeconfig


@pytest.fixture(scope="module")
def admin(
    kubeconfig: Path, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    return Kubectl(kubectl_program, kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    with Installation(kubernetes, CARDS) as installed:
        label_pools(installed)
        eventually(lambda: len(labelled(admin)) == len(CARDS), LONGEST_S)
        eventually(lambda: registered(admin), LONGEST_S)
        yield installed


@contextmanager
def sharing_everywhere(
    kubernetes: Kubernetes, admin: Kubectl, cards: int, way: Way | None = None
) -> Iterator[Installation]:
    """On every node so many V100, all shared and isolated; two schedulers."""
    profiles = {node.name: [V100] * cards for node in kubernetes.nodes}
    with Installation(kubernetes, profiles, schedulers=2, way=way) as installed:
        eventually(lambda: len(admin.names("nodes")) == len(profiles), _SETTLED_S)
        admin("label", "node", "--all", "cgpu=true", "cgpu.disable.isolation=false")
        eventually(lambda: registered(admin), _SETTLED_S)
        units = str(cards * UNITS_PER_CARD)
        eventually(
            lambda: all(
                allocatable(admin, node).get(RESOURCE_GPU_MEM) == units for node in profiles
            ),
            _SETTLED_S,
        )
        yield installed


@pytest.fixture(scope="module")
def installed(request: pytest.FixtureRequest, admin: Kubectl) -> None:
    """gpupool is on the cluster, by whose hands ever."""
    if not ELSEWHERE:
        request.getfixturevalue("gpupool")
    elif not registered(admin):
        pytest.fail(f"{ELSEWHERE}: wanted gpupool there (helm install), found none", pytrace=False)


def nodes_with(kubectl: Kubectl, selector: str) -> list[str]:
    """Never none: without any, the test is not for this cluster."""
    found = kubectl.names("nodes", "-l", selector)
    if not found and ELSEWHERE:
        pytest.skip(f"wanted a node with {selector}, found none")
    assert found, selector
    return found


def labelled(kubectl: Kubectl) -> list[str]:
    return kubectl.names("nodes", "-l", "aliyun.accelerator/nvidia_name")


def registered(kubectl: Kubectl) -> bool:
    """Whether admission has filled in its configurations: the chart makes them empty."""
    kinds = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
    names = ("gpupool-admission", "-o", "jsonpath={.webhooks[*].name}")
    return all(".gpupool.io" in kubectl.run("get", kind, *names).out for kind in kinds)


def allocatable(kubectl: Kubectl, node: str) -> dict[str, str]:
    found: dict[str, str] = kubectl.json("get", "node", node)["status"]["allocatable"]
    return found


@pytest.fixture
def kubectl(installed: None, admin: Kubectl) -> Iterator[Kubectl]:
    """In a namespace of its own, which is gone afterwards with all its pods."""
    name = f"gpupool-test-{secrets.token_hex(4)}"
    admin("create", "namespace", name)
    accounts = ("get", "serviceaccount", "default", f"--namespace={name}")
    eventually(lambda: admin.run(*accounts).code == 0, LONGEST_S)
    yield admin.within(name)
    admin("delete", "namespace", name, "--timeout=80s")
