"""SimulatedLimits: memory limits of containers on a simulated node, in its state file.

For local clusters, whose containers have no cgroups: a container's directory
(`simdriver.NodeFiles.container`) takes the place of its cgroup. Programs that load the simulated
libnvidia-ml set limits of real cgroups; native/simdriver/limits.c has the same table.
"""

import ctypes
import os
from pathlib import Path

from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware.memory_limits import (
    NO_LIMITS,
    Found,
    LimitsRefused,
    LimitsUnsupported,
    MemoryLimits,
)
from gpupool.hardware.simdriver_locks import held, is_alive
from gpupool.hardware.simdriver_state import SimdriverError, copied, opened


class SimulatedLimits:
    def __init__(self, state: Path) -> None:
        self._state = state

    def set(self, cgroup: str, uuid: str, limits: MemoryLimits) -> None:
        place = _place(cgroup)
        try:
            with opened(self._state) as (fd, state), held(fd, layout.LOCK_LIMITS):
                if not state.has_limits:
                    version = state.driver_version.decode()
                    raise LimitsUnsupported(f"{cgroup}: driver {version} has no memory limits")
                # Again: others may have set limits before the lock was ours.
                state = copied(fd, self._state)
                _change(fd, state, place, _card(state, uuid), limits)
        except (SimdriverError, OSError) as error:
            raise LimitsRefused(f"{cgroup}: {error}") from error

    def get(self, cgroup: str, uuid: str) -> Found:
        place = _place(cgroup)
        try:
            with opened(self._state) as (fd, state):
                entry, card = _entry(state, place), _card(state, uuid)
                if entry is None:
                    return Found(NO_LIMITS)
                limits = MemoryLimits(entry.soft[card], entry.hard[card])
                return Found(limits, _used(fd, state, place, card) if limits.are_set else 0)
        except (SimdriverError, OSError) as error:
            raise LimitsRefused(f"{cgroup}: {error}") from error


def _place(cgroup: str) -> bytes:
    """As native/simdriver/cgroup.h has it."""
    *_, containers, pod, container = ("", "", "", *Path(cgroup).parts)
    place = f"containers:/{pod}/{container}".encode()
    if containers != "containers" or len(place) >= layout.PLACE_BYTES:
        raise LimitsRefused(f"{cgroup}: wanted the directory of a container of a simulated node")
    return place


def _card(state: layout.State, uuid: str) -> int:
    for index in range(state.card_count):
        if state.cards[index].fixed.uuid.decode() == uuid:
            return index
    raise LimitsRefused(f"{state.node.decode()}: there is no card {uuid}")


def _used(fd: int, state: layout.State, place: bytes, card: int) -> int:
    # No container is below another, so each place is its own.
    return sum(
        state.used[card][slot] - state.managed[card][slot]
        for slot in range(min(state.slots_seen, layout.MAX_SLOTS))
        if state.slots[slot].place == place and is_alive(fd, state, slot)
    )


def _entry(state: layout.State, place: bytes) -> layout.Limit | None:
    number = _number(state, place)
    return None if number is None else state.limits[number]


def _number(state: layout.State, place: bytes) -> int | None:
    for number in range(min(state.limits_seen, layout.MAX_LIMITS)):
        entry = state.limits[number]
        if entry.is_set and entry.place == place:
            return number
    return None


def _change(fd: int, state: layout.State, place: bytes, card: int, limits: MemoryLimits) -> None:
    number = _number(state, place)
    if number is None:
        if not limits.are_set:
            return
        number = _new_entry(fd, state, place)
    entry = state.limits[number]
    entry.hard[card] = limits.hard
    entry.soft[card] = limits.soft
    indexes = range(layout.MAX_CARDS)
    if all(MemoryLimits(entry.soft[each], entry.hard[each]) == NO_LIMITS for each in indexes):
        entry.is_set = 0
    # Readers take no lock. An entry counts from the moment at which it is said to be set.
    _write(fd, number, bytes(entry)[: layout.Limit.is_set.offset])
    _write(fd, number, bytes(entry)[layout.Limit.soft.offset :], layout.Limit.soft.offset)
    _write(fd, number, entry.is_set.to_bytes(4, "little"), layout.Limit.is_set.offset)


def _new_entry(fd: int, state: layout.State, place: bytes) -> int:
    """Which one is free. It has no effect until it is written."""
    for number in range(layout.MAX_LIMITS):
        entry: layout.Limit = state.limits[number]
        if entry.is_set:
            continue
        entry.place, entry.cgroup = place, 0
        entry.soft[:] = [0] * layout.MAX_CARDS
        entry.hard[:] = [layout.NO_LIMIT] * layout.MAX_CARDS
        entry.is_set = 1
        if number >= state.limits_seen:
            seen = (number + 1).to_bytes(4, "little")
            os.pwrite(fd, seen, layout.State.limits_seen.offset)
        return number
    raise LimitsRefused(
        f"{state.node.decode()}: wanted at most {layout.MAX_LIMITS} limited cgroups"
    )


def _write(fd: int, number: int, content: bytes, offset: int = 0) -> None:
    """A part of an entry, into the file itself."""
    os.pwrite(
        fd, content, layout.State.limits.offset + number * ctypes.sizeof(layout.Limit) + offset
    )
