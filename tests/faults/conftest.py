"""One nursery for all tests of faults: it costs a second to load."""

from collections.abc import Iterator

import pytest

from tests.faults.api_child import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()
