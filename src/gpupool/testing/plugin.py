"""pytest: the fixture `gpupool_cluster`, one local cluster for the whole test session.

pytest finds it through the entry point of the installed package. Imports are inside the fixture, so
that test runs which do not use it are not slowed down.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gpupool.testing import Cluster


@pytest.fixture(scope="session")
def gpupool_cluster() -> Iterator["Cluster"]:
    """A running local cluster with the default node pools; gone after the last test."""
    from gpupool.testing import Cluster

    with Cluster() as cluster:
        yield cluster
