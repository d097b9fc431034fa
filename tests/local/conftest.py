"""A home of its own for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.local.cluster_setup import Prepared, Wish, set_up_directory
from gpupool.local.home import ClusterDirectory, Home
from gpupool.local.server_process import stop_server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for variable in ("XDG_STATE_HOME", "GPUPOOL_QUOTA_CLUSTERS", "GPUPOOL_QUOTA_NODES_PER_CLUSTER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("GPUPOOL_HOME", str(tmp_path / "home"))
    made = Home(tmp_path / "home")
    yield made
    for cluster in made.clusters():
        stop_server(cluster, patience_s=0)


@pytest.fixture
def cluster(home: Home) -> ClusterDirectory:
    """A cluster that can be started, but is not."""
    prepared = set_up_directory(home, Wish(name="a", port=0))
    assert isinstance(prepared, Prepared)
    return prepared.cluster
