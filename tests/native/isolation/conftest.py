"""A container with 3226 of the 16130 MiB of a card. The limiter is loaded in each possible way."""

from pathlib import Path

import pytest

from tests.native.isolation.limited import WAYS, Container, make_container


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return make_container(tmp_path)


@pytest.fixture(params=WAYS)
def container_by_each_way(request: pytest.FixtureRequest, tmp_path: Path) -> Container:
    return make_container(tmp_path, way=request.param)
