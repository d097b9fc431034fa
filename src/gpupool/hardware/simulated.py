"""SimulatedDriver: reads a simulated node's cards from its state file, without its libraries.

Programs in containers write this file, and can do anything to it. So it is copied and not mapped:
access to a mapped file that somebody cuts short ends the process, and this is the process of all
nodes.
"""

import ctypes
import os
import time
from pathlib import Path

from gpupool.core.readings import CardReading
from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware.context_memory import NotMeasured
from gpupool.hardware.driver import (
    CardLook,
    Loads,
    Look,
    NoDriver,
    ProgramLoad,
    ProgramUse,
    Uses,
    Xid,
)
from gpupool.hardware.simdriver_locks import is_alive, visible_pid
from gpupool.hardware.simdriver_state import MIB, SimdriverError, copied
from gpupool.hardware.simulated_readings import card_reading, program_percent

_EVENT_XID = 8  # nvmlEventTypeXidCriticalError
_NO_FAULT = bytes(ctypes.sizeof(layout.CardFault))


class SimulatedDriver:
    def __init__(self, state: Path) -> None:
        """`state` is the state file (simdriver.NodeFiles.state); it need not exist yet."""
        self._path = state
        self._fd = -1
        self._inode = 0
        self._untroubled: tuple[CardLook, ...] = ()  # the cards while none has a fault: kept
        self._seen = 0  # number of the last event that was read

    async def look(self) -> Look:
        state = self._read()
        return Look(
            version=state.driver_version.decode(errors="replace"),
            cuda=state.cuda_version,
            # `create_node` replaces the file when a node boots; its cards are then as new.
            boot=str(self._inode),
            cards=self._cards(state),
            xids=self._new_xids(state),
        )

    async def uses(self) -> Uses:
        state = self._read()
        found = []
        for slot in range(min(state.slots_seen, layout.MAX_SLOTS)):
            pid = visible_pid(self._fd, state, slot) if is_alive(self._fd, state, slot) else None
            for index in range(state.card_count) if pid else ():
                if used := state.used[index][slot]:
                    uuid = state.cards[index].fixed.uuid.decode(errors="replace")
                    found.append(ProgramUse(pid or 0, uuid, used // MIB))
        cards = (state.cards[index] for index in range(state.card_count))
        read = frozenset(
            card.fixed.uuid.decode(errors="replace") for card in cards if not card.fault.is_lost
        )
        return Uses(tuple(use for use in found if use.uuid in read), read)

    async def readings(self) -> tuple[CardReading, ...]:
        state = self._read()
        slots = range(min(state.slots_seen, layout.MAX_SLOTS))
        living = [slot for slot in slots if is_alive(self._fd, state, slot)]
        return tuple(
            card_reading(state.cards[index], sum(state.used[index][slot] for slot in living))
            for index in range(state.card_count)
            if not state.cards[index].fault.is_lost
        )

    async def loads(self, since_us: int) -> Loads:
        state = self._read()
        ago_ns = time.time_ns() - since_us * 1000
        since_ns = max(0, time.monotonic_ns() - max(0, ago_ns))
        uuids = {
            index: state.cards[index].fixed.uuid.decode(errors="replace")
            for index in range(state.card_count)
            if not state.cards[index].fault.is_lost
        }
        found = [
            ProgramLoad(pid, uuid, program_percent(state.slots[slot].busy[index], since_ns))
            for slot in range(min(state.slots_seen, layout.MAX_SLOTS))
            if is_alive(self._fd, state, slot)
            for pid in [visible_pid(self._fd, state, slot)]
            if pid
            for index, uuid in uuids.items()
            if state.used[index][slot] or state.slots[slot].contexts >> index & 1
        ]
        return Loads(tuple(found), frozenset(uuids.values()))

    async def context_mib(self) -> int:
        try:
            state = self._read()
        except NoDriver as error:
            raise NotMeasured(str(error)) from error
        sizes = (state.cards[index].fixed.context_bytes for index in range(state.card_count))
        return -(-max(sizes, default=0) // MIB)

    async def close(self) -> None:
        self._close()

    def _read(self) -> layout.State:
        """The present content of the file, which is opened again when it was replaced, because the
        node has restarted or its cards were exchanged."""
        try:
            # If the file is replaced between stat and open, the next look finds another inode and
            # opens it again.
            inode = os.stat(self._path).st_ino
            is_new = self._fd < 0 or inode != self._inode
            if is_new:
                self._close()
                self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            state = copied(self._fd, self._path)
        except OSError as error:
            self._close()
            raise NoDriver(f"no simulated driver at {self._path}: {error.strerror}") from error
        except SimdriverError as error:
            self._close()
            raise NoDriver(str(error)) from error
        if is_new:
            # Older events are skipped, as NVML reports only XIDs that occur after the subscription.
            self._inode, self._seen = inode, state.last_event
            self._untroubled = ()
        return state

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _cards(self, state: layout.State) -> tuple[CardLook, ...]:
        indexes = range(state.card_count)
        if not any(_is_changed(state.cards[index]) for index in indexes):
            if not self._untroubled:
                self._untroubled = tuple(_card_look(state, index) for index in indexes)
            # The same object each time makes it cheap to compare a look with the one before.
            return self._untroubled
        return tuple(_card_look(state, index) for index in indexes)

    def _new_xids(self, state: layout.State) -> tuple[Xid, ...]:
        # What lies further back in the ring is overwritten.
        first = max(self._seen, state.last_event - (layout.MAX_EVENTS - 1)) + 1
        wanted = range(first, state.last_event + 1)
        self._seen = max(self._seen, state.last_event)
        entries = [(number, state.events[number % layout.MAX_EVENTS]) for number in wanted]
        return tuple(
            Xid(state.cards[entry.card].fixed.uuid.decode(errors="replace"), entry.data)
            for number, entry in entries
            if entry.sequence == number
            and entry.type == _EVENT_XID
            and entry.card < state.card_count
        )


def _is_changed(card: layout.Card) -> bool:
    """Whether somebody has done something to the card since it was made."""
    return bytes(card.fault) != _NO_FAULT or card.fixed.has_mig == layout.MIG_ON


def _card_look(state: layout.State, index: int) -> CardLook:
    fixed, fault = state.cards[index].fixed, state.cards[index].fault
    if fault.is_lost:
        return CardLook(index, is_lost=True)
    return CardLook(
        index,
        fixed.uuid.decode(errors="replace"),
        fixed.name.decode(errors="replace"),
        fixed.memory_bytes // MIB,
        links=_links(state, index),
        numa=fixed.numa_node,
        compute=(fixed.compute_major, fixed.compute_minor),
        is_split=fixed.has_mig == layout.MIG_ON,
        ecc_uncorrected=fault.ecc_uncorrected_volatile,
        outside_mib=fault.outside_bytes // MIB,
    )


def _links(state: layout.State, index: int) -> tuple[tuple[int, int], ...]:
    counts: dict[int, int] = {}
    fixed = state.cards[index].fixed
    for peer in fixed.link_peer[: fixed.link_count]:
        for other in _ends(state, index, peer):
            counts[other] = counts.get(other, 0) + 1
    return tuple(sorted(counts.items()))


def _ends(state: layout.State, index: int, peer: int) -> list[int]:
    """The cards at the other end: behind a switch, all other cards that are linked to a switch."""
    if peer == layout.LINK_SWITCH:
        cards = range(state.card_count)
        return [
            other
            for other in cards
            if other != index and state.cards[other].fixed.link_peer[0] == layout.LINK_SWITCH
        ]
    is_card = peer < state.card_count and not state.cards[peer].fault.is_lost
    return [peer] if is_card else []
