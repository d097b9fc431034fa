"""SimulatedLimits: memory limits of containers on a simulated node, in its state file.

For local clusters, whose containers have no cgroups: a container's directory
(`simdriver.NodeFiles.container`) takes the place of its cgroup. Programs that load the simulated
libnvidia-ml set limits of real cgroups; native/simdriver/limits.c has the same table.
"""

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
from gpupool.hardware.simdriver_state import SimdriverError, opened


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
                _change(state, place, _card(state, uuid), limits)
        except SimdriverError as error:
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
        except SimdriverError as error:
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
    known = (state.limits[number] for number in range(state.limits_seen))
    return next((entry for entry in known if entry.is_set and entry.place == place), None)


def _change(state: layout.State, place: bytes, card: int, limits: MemoryLimits) -> None:
    entry = _entry(state, place)
    if entry is None:
        if not limits.are_set:
            return
        entry = _new_entry(state, place)
    # The limit before the rest, both ways: readers take no lock.
    entry.hard[card] = limits.hard
    entry.soft[card] = limits.soft
    indexes = range(layout.MAX_CARDS)
    if all(MemoryLimits(entry.soft[each], entry.hard[each]) == NO_LIMITS for each in indexes):
        entry.is_set = 0


def _new_entry(state: layout.State, place: bytes) -> layout.Limit:
    for number in range(layout.MAX_LIMITS):
        entry: layout.Limit = state.limits[number]
        if entry.is_set:
            continue
        entry.place, entry.cgroup = place, 0
        entry.soft[:] = [0] * layout.MAX_CARDS
        entry.hard[:] = [layout.NO_LIMIT] * layout.MAX_CARDS
        entry.is_set = 1
        state.limits_seen = max(state.limits_seen, number + 1)
        return entry
    raise LimitsRefused(
        f"{state.node.decode()}: wanted at most {layout.MAX_LIMITS} limited cgroups"
    )
