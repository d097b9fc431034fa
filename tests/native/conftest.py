"""Builds the native parts before the tests, and makes a node with two cards."""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.hardware import limiter, simdriver
from gpupool.hardware.simdriver import NodeFiles
from native import build
from tests.native import sanitizers
from tests.native.simulated import make_node

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def _native_parts() -> Iterator[None]:
    if not sanitizers.is_active():
        build.build(platform.machine())
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simdriver, "built_files", lambda: NodeFiles(sanitizers.built()))
        patch.setattr(limiter, "_built", lambda: sanitizers.built() / "limiter")
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not sanitizers.is_active():
        return
    left_out = [item for item in items if sanitizers.reason_to_leave_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    return make_node(tmp_path / "node")
