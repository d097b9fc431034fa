"""A real Kubernetes with real kubelets, and gpupool on it. Run by `make test-kubernetes` alone.

It needs root, and Go where the programs are not built yet; without them nothing of this is tested,
and that is said as a failure, since whoever asks for these tests wants them.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.build import BuildError
from testbed.cluster import CannotRun, Kubernetes, check
from testbed.find_kubectl import ensure_kubectl
from testbed.gpu_images import write_gpu_images
from testbed.installation import Installation
from testbed.story import CARDS, label_pools
from tests.e2e.kubectl import Kubectl, eventually

LONGEST_S = 120.0  # for anything; the machine may be busy with other things
_serial = itertools.count(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only who says so starts kubelets as root."""
    if "kubernetes" not in config.getoption("-m"):
        skip = pytest.mark.skip(reason="a real Kubernetes is started by `make test-kubernetes`")
        for item in items:
            if item.get_closest_marker("kubernetes"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def able() -> None:
    try:
        check()
    except CannotRun as error:
        pytest.fail(f"NO REAL KUBERNETES: nothing of it was tested: {error}", pytrace=False)


@pytest.fixture(scope="session")
def kubectl_program(able: None) -> Path:
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
def admin(
    kubernetes: Kubernetes, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    folder = tmp_path_factory.mktemp("kubectl")
    return Kubectl(kubectl_program, kubernetes.plane.kubeconfig, folder)


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    with Installation(kubernetes, CARDS) as installed:
        label_pools(installed)
        eventually(lambda: len(labelled(admin)) == len(CARDS), LONGEST_S)
        eventually(lambda: registered(admin), LONGEST_S)
        yield installed


def labelled(kubectl: Kubectl) -> list[str]:
    return kubectl.names("nodes", "-l", "aliyun.accelerator/nvidia_name")


def registered(kubectl: Kubectl) -> bool:
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return all("gpupool-admission" in kubectl.names(kind) for kind in kinds)


def allocatable(kubectl: Kubectl, node: str) -> dict[str, str]:
    found: dict[str, str] = kubectl.json("get", "node", node)["status"]["allocatable"]
    return found


@pytest.fixture
def kubectl(gpupool: Installation, admin: Kubectl) -> Iterator[Kubectl]:
    """In a namespace of its own, which is gone afterwards with all its pods."""
    name = f"test-{next(_serial)}"
    admin("create", "namespace", name)
    accounts = ("get", "serviceaccount", "default", f"--namespace={name}")
    eventually(lambda: admin.run(*accounts).code == 0, LONGEST_S)
    yield admin.within(name)
    admin("delete", "namespace", name, "--timeout=80s")
