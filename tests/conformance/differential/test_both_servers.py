"""Every script gets the same answers from a real Kubernetes and from the local cluster.

What `make conformance` does, as tests: pytest -m kubernetes tests/conformance. Takes ten minutes.
"""

from collections.abc import Iterator

import pytest

from testbed.build import BuildError
from testbed.find_kubectl import ensure_kubectl
from tests.conformance.differential.__main__ import problems
from tests.conformance.differential.both import Servers, servers
from tests.conformance.differential.catalogue import Work, everything, expected_of

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    if "kubernetes" not in request.config.getoption("-m"):
        pytest.skip("a real kube-apiserver is started by `pytest -m kubernetes` alone")
    kubectl = ensure_kubectl()
    if kubectl is None:
        pytest.fail("NOTHING WAS COMPARED: there is no kubectl, and no Go to build one with")
    try:
        with servers(kubectl, tmp_path_factory.mktemp("both")) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NOTHING WAS COMPARED: {error}", pytrace=False)


@pytest.mark.parametrize("work", everything(), ids=lambda work: work.name)
def test_a_script_gets_the_same_answers(work: Work, both: Servers) -> None:
    found = problems(both.compare(work), expected_of(work))
    assert not found, "\n".join(found)
