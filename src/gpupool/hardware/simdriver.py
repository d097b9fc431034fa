"""A node's simulated NVIDIA driver: creates it, breaks its cards, reads their state.

    files = create_node(directory, "node-1", [card_profile("Tesla V100-SXM2-16GB", 16130)] * 2)
    files.libraries            # libcuda.so.1, libnvidia-ml.so.1: for LD_LIBRARY_PATH
    files.programs             # nvidia-smi: for PATH
    inject(files, 0, parse_fault("xid=79"))     # card by index or UUID
    for card in read_cards(files): ...          # CardState: memory, health, processes

One directory holds everything of a node. It contains no absolute paths, so that it can be mounted
into containers at any path. A program finds the state file relative to the library that it loaded,
or where GPUPOOL_SIM_STATE says. NVIDIA_VISIBLE_DEVICES says which cards the program sees, as in a
container of NVIDIA's runtime.

    SimdriverError             the text says thing, wanted, found (all in simdriver_state.py)
     +- NotBuilt               this machine has no libraries for its architecture
     +- BadState               the state file is missing, damaged or of another version
     +- NoSuchCard
"""

import ctypes
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware import simdriver_locks as locks
from gpupool.hardware.simdriver_cards import CardProfile
from gpupool.hardware.simdriver_faults import (
    LOSING_XIDS,
    POISONING_XIDS,
    RETIRING_XIDS,
    Fault,
    FaultKind,
)
from gpupool.hardware.simdriver_state import (
    MIB,
    BadState,
    Driver,
    NoSuchCard,
    NotBuilt,
    mapped,
    new_state,
    opened,
)

CONFIG = "simdriver.conf"  # beside the libraries
_PATIENCE_S = 10.0
_EVENT_XID, _EVENT_ECC_SINGLE, _EVENT_ECC_DOUBLE = 8, 1, 2  # nvmlEventType*


class NodeFiles(NamedTuple):
    directory: Path

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def libraries(self) -> Path:
        return self.directory / "lib"

    @property
    def programs(self) -> Path:
        return self.directory / "bin"

    @property
    def containers(self) -> Path:
        """Has a directory for each container: what memory limits are set on, in place of cgroups
        (native/simdriver/cgroup.h)."""
        return self.directory / "containers"

    def container(self, pod: str, container: str) -> Path:
        return self.containers / pod / container


class CardProcess(NamedTuple):
    pid: int | None  # in our own pid namespace; None: the process is not visible there
    name: str
    used_bytes: int


@dataclass(frozen=True, slots=True)
class CardState:
    index: int
    uuid: str
    name: str
    memory_mib: int
    outside_bytes: int
    is_lost: bool
    is_poisoned: bool
    last_xid: int  # 0: none since the last recovery
    ecc_uncorrected: int
    ecc_corrected: int
    processes: tuple[CardProcess, ...]

    @property
    def used_bytes(self) -> int:
        return self.outside_bytes + sum(process.used_bytes for process in self.processes)


def built_files() -> NodeFiles:
    """The files in the package that were built for this architecture. Raises NotBuilt."""
    machine = platform.machine()
    place = Path(__file__).resolve().parent.parent / "_native" / machine
    if not (place / "lib" / "libcuda.so.1").exists():
        raise NotBuilt(
            f"there is no simulated driver for {platform.system()} on {machine}; "
            "in a checkout, `make native` builds it"
        )
    return NodeFiles(place)


def create_node(
    directory: Path, node: str, cards: Sequence[CardProfile], driver: Driver | None = None
) -> NodeFiles:
    """Makes the directory of a node, or replaces it. Running programs keep the old state file."""
    if len(cards) > layout.MAX_CARDS:
        raise BadState(f"{node}: wanted at most {layout.MAX_CARDS} cards, found {len(cards)}")
    files, built = NodeFiles(directory), built_files()
    for source, target in (
        (built.libraries, files.libraries),
        (built.programs, files.programs),
    ):
        target.mkdir(parents=True, exist_ok=True)
        for file in source.iterdir():
            _place(file, target / file.name)
    # For every user, as the libraries beside it: containers run as any.
    _replace(files.libraries / CONFIG, b"state=../state\n", mode=0o644)
    # A node that boots has no containers.
    shutil.rmtree(files.containers, ignore_errors=True)
    # Last: once the state file exists, the node has a driver. Its new inode tells agents that the
    # node has booted (`simulated.py`).
    _replace(files.state, bytes(new_state(node, cards, driver or Driver())))
    return files


def has_limits(files: NodeFiles) -> bool:
    """Whether the node's driver holds cgroups to memory limits. Raises BadState."""
    with opened(files.state) as (_, state):
        return bool(state.has_limits)


def link_state(files: NodeFiles, pod: str, container: str) -> Path:
    """The state file as this container gets it mounted: a link of its own, by whose name the driver
    knows the container. Raises OSError."""
    link = files.container(pod, container) / files.state.name
    link.parent.mkdir(parents=True, exist_ok=True)
    # Perhaps left from before the node's last boot, which replaced the state file.
    link.unlink(missing_ok=True)
    os.link(files.state, link)
    return link


def read_cards(files: NodeFiles) -> tuple[CardState, ...]:
    """The cards. Processes that have ended are left out, even if their entries are still there."""
    with opened(files.state) as (fd, state):
        seen = range(min(state.slots_seen, layout.MAX_SLOTS))
        alive = [slot for slot in seen if locks.is_alive(fd, state, slot)]
        pids = {slot: locks.visible_pid(fd, state, slot) for slot in alive}
        return tuple(_card_state(state, index, pids) for index in range(state.card_count))


def inject(files: NodeFiles, card: int | str | None, fault: Fault) -> None:
    """Breaks a card, named by index or UUID; None: all of them. Raises BadState, NoSuchCard."""
    try:
        with (
            mapped(files.state) as (fd, state),
            locks.held(fd, layout.LOCK_INJECT, _PATIENCE_S),
        ):
            _inject(state, card, fault)
    except locks.StillLocked as error:
        raise BadState(f"{files.state}: {error.strerror} by a program") from None


def _inject(state: layout.State, card: int | str | None, fault: Fault) -> None:
    if card is None and fault.kind in (FaultKind.FAIL, FaultKind.HANG):
        # Also for calls that are about no card, or not about one that is known.
        _add_call_fault(state, layout.EVERY_CARD, fault)
        return
    for index in range(state.card_count) if card is None else (_card_index(state, card),):
        _apply(state, index, fault)


def _apply(state: layout.State, index: int, fault: Fault) -> None:
    now = state.cards[index].fault
    match fault.kind:
        case FaultKind.XID:
            now.last_xid = fault.value
            now.is_lost |= fault.value in LOSING_XIDS
            now.is_poisoned |= fault.value in POISONING_XIDS
            now.retired_pages += fault.value in RETIRING_XIDS
            _announce(state, index, _EVENT_XID, fault.value)
        case FaultKind.LOST:
            now.is_lost = 1
        case FaultKind.ECC | FaultKind.ECC_CORRECTED:
            _add_memory_errors(state, index, fault)
        case FaultKind.MIG:
            _set_mig_mode(state.cards[index].fixed, bool(fault.value))
        case FaultKind.TEMPERATURE:
            now.temperature_c = fault.value
        case FaultKind.OUTSIDE_MEMORY:
            now.outside_bytes = min(fault.value * MIB, state.cards[index].fixed.memory_bytes)
        case FaultKind.OUTSIDE_UTILISATION:
            now.outside_percent = fault.value
        case FaultKind.FAIL | FaultKind.HANG:
            _add_call_fault(state, index, fault)
        case FaultKind.RECOVER:
            _end_call_faults(state, index)
            state.cards[index].fault = layout.CardFault(
                ecc_corrected_aggregate=now.ecc_corrected_aggregate,
                ecc_uncorrected_aggregate=now.ecc_uncorrected_aggregate,
                retired_pages=now.retired_pages,
            )


def _add_memory_errors(state: layout.State, index: int, fault: Fault) -> None:
    now = state.cards[index].fault
    if fault.kind is FaultKind.ECC_CORRECTED:
        now.ecc_corrected_volatile += fault.value
        now.ecc_corrected_aggregate += fault.value
        _announce(state, index, _EVENT_ECC_SINGLE, 0)
        return
    now.ecc_uncorrected_volatile += fault.value
    now.ecc_uncorrected_aggregate += fault.value
    now.is_poisoned = 1
    _announce(state, index, _EVENT_ECC_DOUBLE, 0)


def _set_mig_mode(card: layout.CardFixed, is_on: bool) -> None:
    """Of a card that has MIG. A reset does not change it, as on real cards."""
    if card.has_mig:
        card.has_mig = layout.MIG_ON if is_on else 1


def _add_call_fault(state: layout.State, index: int, fault: Fault) -> None:
    entry = next((entry for entry in state.call_faults if not entry.id), None)
    if entry is None:
        raise BadState(
            f"{state.node.decode()}: wanted at most {layout.MAX_CALL_FAULTS} calls that fail or "
            "hang; recover ends those of a card"
        )
    entry.call, entry.card = fault.call.encode(), index
    entry.result = fault.value if fault.kind is FaultKind.FAIL else layout.CALL_HANGS
    entry.after = fault.after
    entry.times = layout.ALWAYS if fault.times is None else fault.times
    state.last_call_fault = state.last_call_fault % 0x7FFFFFFF + 1
    # Last, because readers take no lock.
    entry.id = state.last_call_fault
    state.call_fault_count += 1


def _end_call_faults(state: layout.State, index: int) -> None:
    """Ends those of the card, and those that are not about one card. Calls that hang go on."""
    for number, entry in enumerate(state.call_faults):
        if not entry.id or entry.card not in (index, layout.EVERY_CARD):
            continue
        entry.id = 0
        state.call_fault_count -= 1
        place = layout.State.call_faults.offset + number * ctypes.sizeof(layout.CallFault)
        locks.wake_all(ctypes.addressof(state) + place + layout.CallFault.id.offset)


def _announce(state: layout.State, card: int, kind: int, data: int) -> None:
    """Appends an event. Its fields are written before its number, because readers take no lock:
    a reader that sees the number must see the complete entry."""
    sequence = state.last_event + 1
    entry = state.events[sequence % layout.MAX_EVENTS]
    # 0 while the entry is incomplete: a reader that is a whole ring behind must not take it for the
    # old one.
    entry.sequence = 0
    entry.card, entry.type, entry.data = card, kind, data
    entry.time_ns = time.monotonic_ns()
    entry.sequence = sequence
    state.last_event = sequence
    state.event_futex = sequence & 0xFFFFFFFF
    locks.wake_all(ctypes.addressof(state) + layout.State.event_futex.offset)


def _card_state(state: layout.State, index: int, pids: dict[int, int | None]) -> CardState:
    fixed, fault = state.cards[index].fixed, state.cards[index].fault
    return CardState(
        index,
        fixed.uuid.decode(),
        fixed.name.decode(),
        fixed.memory_bytes // MIB,
        fault.outside_bytes,
        bool(fault.is_lost),
        bool(fault.is_poisoned),
        fault.last_xid,
        fault.ecc_uncorrected_volatile,
        fault.ecc_corrected_volatile,
        tuple(
            CardProcess(pid, state.slots[slot].name.decode(errors="replace"), used)
            for slot, pid in pids.items()
            if (used := state.used[index][slot]) or state.slots[slot].contexts >> index & 1
        ),
    )


def _card_index(state: layout.State, card: int | str) -> int:
    uuids = [state.cards[index].fixed.uuid.decode() for index in range(state.card_count)]
    if isinstance(card, int) and 0 <= card < len(uuids):
        return card
    if card in uuids:
        return uuids.index(str(card))
    known = ", ".join(uuids) or "it has none"
    raise NoSuchCard(
        f"{state.node.decode()}: there is no card {card}; wanted an index below "
        f"{len(uuids)} or one of {known}"
    )


def _place(source: Path, target: Path) -> None:
    """A hard link where possible: hundreds of nodes then share one copy on disk."""
    # Never written in place: running programs have the old file mapped, and hard links share it.
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, mode)
        file.write(content.rstrip(b"\0"))  # the rest is a hole in a sparse file
        file.truncate(len(content))
    os.replace(name, path)
