"""The native parts, up to date, and a node of two cards."""

import platform
import sys
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles
from native import build
from tests.native.simulated import make_node

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def _native_parts() -> None:
    build.build(platform.machine())


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    return make_node(tmp_path / "node")
