"""The state file of a simulated driver in the hands of a hostile container, which can write it."""

import fcntl
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware.memory_limits import LimitsRefused, MemoryLimits
from gpupool.hardware.simdriver import NodeFiles, read_cards
from gpupool.hardware.simulated_limits import SimulatedLimits
from tests.native.walled import container_place, walled_node

# Cuts the file short as soon as its content was checked, as a container does by chance.
_CUT = """
import os, sys
from pathlib import Path
from gpupool.hardware import simdriver, simdriver_state, simulated_limits
from gpupool.hardware.memory_limits import LimitsRefused, MemoryLimits

files, place, uuid = simdriver.NodeFiles(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
real = simdriver_state.copied
def copied(fd, path):
    state = real(fd, path)
    os.ftruncate(fd, 0)
    return state
simdriver_state.copied = simulated_limits.copied = copied
limits = simulated_limits.SimulatedLimits(files.state)
whole = files.state.read_bytes()
for step in (
    lambda: simdriver.has_limits(files),
    lambda: simdriver.read_cards(files),
    lambda: limits.get(place, uuid),
    lambda: limits.set(place, uuid, MemoryLimits(0, 1)),
):
    files.state.write_bytes(whole)
    try:
        step()
    except (simdriver_state.SimdriverError, LimitsRefused) as error:
        print(error)
print("alive")
"""


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    return walled_node(tmp_path)


def test_a_file_that_is_cut_short_ends_nobody_who_reads_it(node: NodeFiles) -> None:
    place, uuid = str(container_place(node).directory), read_cards(node)[0].uuid
    command = [sys.executable, "-c", _CUT, str(node.directory), place, uuid]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stdout.splitlines()[-1:]) == (0, ["alive"]), found.stderr


def test_nobody_waits_for_a_lock_that_a_container_holds_for_ever(node: NodeFiles) -> None:
    place, uuid = str(container_place(node).directory), read_cards(node)[0].uuid
    limits = SimulatedLimits(node.state)
    holder = os.open(node.state, os.O_RDWR)
    lock = struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, layout.LOCK_LIMITS, 1, 0)
    fcntl.fcntl(holder, fcntl.F_OFD_SETLK, lock)
    with pytest.raises(LimitsRefused, match="is locked"):
        limits.set(place, uuid, MemoryLimits(0, 1))
    os.close(holder)
    limits.set(place, uuid, MemoryLimits(0, 1))
    assert limits.get(place, uuid).limits == MemoryLimits(0, 1)
