from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.localkube.apiserver.stalls.watched import Watched, watched_server


@pytest.fixture
def private(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
async def watched(private: Path) -> AsyncIterator[Watched]:
    async with watched_server(private) as server:
        yield server
