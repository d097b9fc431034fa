"""The driver frees what programs destroy: memory of the card, and memory of the process."""

from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles
from tests.native import sanitizers
from tests.native.isolation.limited import make_container
from tests.native.simulated import compile_c, run


@pytest.fixture(scope="module")
def lifecycle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("lifecycle") / "lifecycle"
    compile_c(Path(__file__).with_name("lifecycle.c"), program, "-lpthread")
    return program


def test_the_simulated_driver_frees_everything(node: NodeFiles, lifecycle: Path) -> None:
    done = run(node, lifecycle, extra=sanitizers.leak_variables())
    assert (done.returncode, done.stdout) == (0, "0 0\n"), done.stderr


def test_the_limiter_counts_everything_back(tmp_path: Path, lifecycle: Path) -> None:
    done = make_container(tmp_path).run(lifecycle, extra=sanitizers.leak_variables())
    assert (done.returncode, done.stdout) == (0, "0 0\n"), done.stderr
