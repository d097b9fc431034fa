"""Real clients on a real local cluster.

One cluster serves all tests of a pytest process; each test has a namespace of its own in it. Tests
that change nodes have a cluster to themselves.
"""

import gc
import itertools
import re
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from gpupool.local.config.settings import NAMES
from gpupool.testing import Cluster
from testbed.find_kubectl import ensure_kubectl
from tests.e2e.api import call, has_service_account, make_namespace, ready_nodes
from tests.e2e.kubectl import Kubectl, eventually

# Workers to run pods on, and a little of everything else.
POOLS = [
    {"name": "control", "role": "control-plane", "instanceType": "ecs.g6.xlarge", "count": 1},
    {"name": "workers", "instanceType": "ecs.g6.8xlarge", "count": 3, "labels": {"disk": "ssd"}},
]
NODES = 4
_serial = itertools.count(1)


class OpenKubectl(Protocol):
    def __call__(self, purpose: str, runtime: str = "timer") -> AbstractContextManager[Kubectl]: ...


def pytest_collection_finish(session: pytest.Session) -> None:
    """Building a kubectl takes minutes, once: before the first test, whose time is limited."""
    if any(item.get_closest_marker("kubectl") for item in session.items):
        try:
            ensure_kubectl()
        except FileNotFoundError as error:
            raise pytest.UsageError(str(error)) from None


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        eventually(lambda: len(ready_nodes(running)) == NODES)
        yield running


@pytest.fixture(autouse=True)
def leftovers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Some clients leave their connections to the garbage collector: it comes now, not in the
    middle of another test."""
    yield
    if request.node.get_closest_marker("clients"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    program = ensure_kubectl()
    if program is None:
        pytest.skip(
            "NO KUBECTL: nothing of kubectl was tested. Set KUBECTL to one of 1.31 or newer, or "
            "install Go and let `python -m testbed.find_kubectl` build it."
        )
    return program


@pytest.fixture(scope="session")
def open_kubectl(
    cluster: Cluster, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> OpenKubectl:
    """Makes kubectls, each with a namespace and a directory of its own."""
    cache = tmp_path_factory.mktemp("kube-cache")  # discovery and schemas, the same for all

    @contextmanager
    def opened(purpose: str, runtime: str = "timer") -> Iterator[Kubectl]:
        folder = tmp_path_factory.mktemp("kubectl")
        (folder / ".kube").mkdir()
        (folder / ".kube" / "cache").symlink_to(cache)
        with _namespace(cluster, purpose, runtime) as name:
            yield Kubectl(kubectl_program, cluster.kubeconfig, folder, name)

    return opened


@pytest.fixture
def kubectl(open_kubectl: OpenKubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """In a namespace whose pods are timers."""
    with open_kubectl(request.node.name) as made:
        yield made


@pytest.fixture
def live(open_kubectl: OpenKubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """In a namespace whose containers are processes."""
    with open_kubectl(request.node.name, "process") as made:
        yield made


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """For other clients than kubectl; its containers are processes."""
    with _namespace(cluster, request.node.name, "process") as name:
        yield name


@contextmanager
def _namespace(cluster: Cluster, purpose: str, runtime: str) -> Iterator[str]:
    words = re.sub(r"[^a-z0-9]+", "-", purpose.removeprefix("test_").lower())
    name = f"{words[:40].strip('-')}-{next(_serial)}"
    make_namespace(cluster, name, {NAMES.runtime_annotation: runtime})
    eventually(lambda: has_service_account(cluster, name))
    yield name
    call(cluster, "DELETE", f"/api/v1/namespaces/{name}")
