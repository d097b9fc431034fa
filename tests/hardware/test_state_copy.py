"""A copy of the simulated driver's state: all that is used, and nothing else is read."""

import ctypes
import os
from pathlib import Path

import pytest

from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware.simdriver_state import copied

# Numbers that say what the rest means.
HEAD = layout.State.slots.offset


@pytest.mark.parametrize("seen", [(layout.MAX_SLOTS, layout.MAX_LIMITS), (2**32 - 1, 2**32 - 1)])
def test_a_copy_has_every_byte_that_may_be_used(tmp_path: Path, seen: tuple[int, int]) -> None:
    state = layout.State()
    ctypes.memset(ctypes.byref(state, HEAD), 0x5A, ctypes.sizeof(state) - HEAD)
    state.magic, state.version, state.card_count = layout.MAGIC, layout.VERSION, 8
    state.slots_seen, state.limits_seen = seen
    assert bytes(copy_of(state, tmp_path)) == bytes(state)


def test_what_was_never_used_is_not_read(tmp_path: Path) -> None:
    state = layout.State()
    state.magic, state.version, state.card_count = layout.MAGIC, layout.VERSION, 8
    state.slots_seen, state.limits_seen = 2, 1
    for slot in range(3):
        state.slots[slot].contexts = state.used[7][slot] = state.managed[7][slot] = 7
    for number in range(2):
        state.limits[number].cgroup = 9
    found = copy_of(state, tmp_path)
    assert [found.slots[slot].contexts for slot in range(3)] == [7, 7, 0]
    assert [found.used[7][1], found.managed[7][1]] == [7, 7]
    assert [found.limits[number].cgroup for number in range(2)] == [9, 0]


def copy_of(state: layout.State, folder: Path) -> layout.State:
    path = folder / "state"
    path.write_bytes(bytes(state))
    fd = os.open(path, os.O_RDWR)
    try:
        return copied(fd, path)
    finally:
        os.close(fd)
