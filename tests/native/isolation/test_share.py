"""A container gets its share of a card's time, exact to two percentage points."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles
from tests.native.isolation.cuda_script import CUDA
from tests.native.isolation.limited import Container, line, make_container
from tests.native.simulated import make_node

POINTS = 2
# Launches kernels without a pause for three seconds. Prints for how much of the last two seconds
# the card worked for it, in percent.
BUSY = f"""
{CUDA}
import time
begin()
module, kernel = c_void_p(), c_void_p()
ok(lib.cuModuleLoadData(byref(module), b"any"))
ok(lib.cuModuleGetFunction(byref(kernel), module, sys.argv[1].encode()))
length = float(sys.argv[1].removeprefix("busy_").removesuffix("us")) / 1e6
print("ready", flush=True)
sys.stdin.readline()
start, count = time.monotonic(), 0
while (now := time.monotonic()) < start + 3:
    ok(lib.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None))
    count += now > start + 1
print(count * length / 2 * 100)
"""


def percent_of(work: Iterable[tuple[Container, str]]) -> list[float]:
    """The percentage of the card that each process got while all ran at the same time."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", BUSY, kernel],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=container.variables(),
        )
        for container, kernel in work
    ]
    for child in children:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()
    return [float(child.communicate()[0]) for child in children]


def shared(directory: Path, node: NodeFiles, percent: int) -> Container:
    limits = line(node, percent=percent)
    return make_container(directory / f"{percent}", node, limits=limits)


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    return make_node(tmp_path / "node")


def test_one_container_gets_its_share(tmp_path: Path, node: NodeFiles) -> None:
    (found,) = percent_of([(shared(tmp_path, node, 30), "busy_1000us")])
    assert found == pytest.approx(30, abs=POINTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "kernel"), [(30, 60, "busy_1000us"), (25, 50, "busy_200us")]
)
def test_two_containers_get_their_shares(
    tmp_path: Path, node: NodeFiles, first: int, second: int, kernel: str
) -> None:
    containers = [shared(tmp_path, node, percent) for percent in (first, second)]
    found = percent_of([(container, kernel) for container in containers])
    assert found == pytest.approx([first, second], abs=POINTS)


@pytest.mark.slow
def test_the_processes_of_a_container_have_one_share(tmp_path: Path, node: NodeFiles) -> None:
    container = shared(tmp_path, node, 40)
    found = percent_of([(container, "busy_1000us")] * 2)
    assert sum(found) == pytest.approx(40, abs=POINTS)


@pytest.mark.slow
def test_kernels_of_different_lengths_are_charged_by_their_length(
    tmp_path: Path, node: NodeFiles
) -> None:
    work = [(shared(tmp_path, node, 20), "busy_100us"), (shared(tmp_path, node, 50), "busy_5000us")]
    assert percent_of(work) == pytest.approx([20, 50], abs=POINTS)


def test_without_a_share_compute_is_not_limited(tmp_path: Path, node: NodeFiles) -> None:
    (found,) = percent_of([(shared(tmp_path, node, 0), "busy_20000us")])
    assert found > 90
