"""One API server of ours for the tests of a module."""

from collections.abc import Iterator

import pytest

from tests.conformance.api_server import api_server
from tests.conformance.record.client import Client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with api_server(tmp_path_factory.mktemp("server")) as server:
        client = Client(f"https://127.0.0.1:{server.port}", server.token, server.ca)
        yield client
        client.close()
