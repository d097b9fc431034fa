"""The fixture of a cluster of objects only."""

from collections.abc import Iterator

import pytest

from tests.cli.kubeconfigs import written
from tests.cli.output.world import World
from tests.conformance.api_server import api_server
from tests.local.conftest import cluster as cluster
from tests.local.conftest import home as home


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    data = folder / "api"
    data.mkdir()
    with api_server(data) as address:
        made = World(written(folder / "kubeconfig", address))
        made.start()
        yield made
