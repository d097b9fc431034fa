"""How a process finds the state file of its node, and which files it refuses."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gpupool.hardware.simdriver import NodeFiles, inject, read_cards
from gpupool.hardware.simdriver_faults import parse_fault
from gpupool.hardware.simdriver_state import BadState
from tests.native.simulated import M40, holding, make_node, python, run

INIT = 'import ctypes; print(ctypes.CDLL("libcuda.so.1").cuInit(0))'


def changed(node: NodeFiles, change: Callable[[bytearray], bytearray]) -> None:
    node.state.write_bytes(change(bytearray(node.state.read_bytes())))


def with_version(content: bytearray) -> bytearray:
    content[8:12] = (7).to_bytes(4, "little")
    return content


def with_cards(content: bytearray) -> bytearray:
    content[16:20] = (99).to_bytes(4, "little")
    return content


DAMAGES: dict[str, tuple[Callable[[bytearray], bytearray], str]] = {
    "another version": (with_version, "wanted version 4, found 7"),
    "too many cards": (with_cards, "found 99"),
    "something else": (lambda content: bytearray(b"hello" * 1000), "not the state of one"),
    "cut short": (lambda content: content[:5000], "found 5000"),
    "empty": (lambda content: bytearray(), "found 0"),
    "longer": (lambda content: content + b"x", "found"),
    "noise": (lambda content: bytearray(os.urandom(len(content))), "not the state of one"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_or_another_version_is_refused_with_a_message(
    node: NodeFiles, damage: str
) -> None:
    change, words = DAMAGES[damage]
    changed(node, change)
    done = run(node, "nvidia-smi")
    assert done.returncode == 18
    assert done.stdout == "Failed to initialize NVML: Driver/library version mismatch\n"
    assert done.stderr.startswith(f"gpupool: simulated driver: {node.libraries}/../state: ")
    assert words in done.stderr
    assert python(node, INIT) == "803\n"  # CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    with pytest.raises(BadState, match=r"wanted|damaged"):
        read_cards(node)
    with pytest.raises(BadState, match=r"wanted|damaged"):
        inject(node, 0, parse_fault("lost"))


def test_without_a_state_file_no_driver_is_found(node: NodeFiles) -> None:
    node.state.unlink()
    assert run(node, "nvidia-smi").returncode == 9
    assert python(node, INIT) == "100\n"
    with pytest.raises(BadState, match="No such file"):
        read_cards(node)


def test_the_environment_variable_overrides_the_file_beside_the_library(
    node: NodeFiles, tmp_path: Path
) -> None:
    other = make_node(tmp_path / "other", [M40])
    done = run(node, "nvidia-smi", "-L", extra={"GPUPOOL_SIM_STATE": str(other.state)})
    assert done.stdout.startswith("GPU 0: Tesla M40 ")


def test_a_node_directory_can_be_moved(node: NodeFiles, tmp_path: Path) -> None:
    moved = NodeFiles(tmp_path / "elsewhere")
    shutil.move(node.directory, moved.directory)
    assert run(moved, "nvidia-smi", "-L").returncode == 0


def test_running_programs_keep_the_state_that_they_opened(node: NodeFiles) -> None:
    with holding(node, 0, 100):
        make_node(node.directory)
        assert not read_cards(node)[0].processes
    assert read_cards(node)[0].used_bytes == 0


def test_cards_keep_their_uuids_when_a_node_is_created_again(node: NodeFiles) -> None:
    before = [card.uuid for card in read_cards(node)]
    make_node(node.directory)
    assert [card.uuid for card in read_cards(node)] == before
