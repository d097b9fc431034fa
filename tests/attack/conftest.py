"""Every attack comes in two lengths: short in `make test`, long in `make attack`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.campaign import Campaign, campaign, long_seconds, long_seed
from tests.attack.target import Target, attacked
from tests.faults.api_child import Nursery

LONG = pytest.param(True, id="long", marks=[pytest.mark.attack, pytest.mark.slow])


def pytest_report_header() -> str:
    return f"attacks: seed {long_seed()}, {long_seconds():.0f} s each (make attack SEED= BUDGET=)"


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(params=[pytest.param(False, id="short"), LONG])
def attack(request: pytest.FixtureRequest) -> Campaign:
    """The dice of one attack. The test ends it, and so fails with all that was noted."""
    return campaign(request.node.originalname, is_long=request.param)


@pytest.fixture
def target(nursery: Nursery, tmp_path: Path) -> Iterator[Target]:
    with attacked(nursery, tmp_path / "data") as made:
        yield made


@pytest.fixture(scope="module")
def target_of_all(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """For attacks that leave nothing behind."""
    with attacked(nursery, tmp_path_factory.mktemp("target") / "data") as made:
        yield made
