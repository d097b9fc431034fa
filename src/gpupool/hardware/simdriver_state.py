"""The state file of a simulated driver: made from card profiles, checked when opened."""

import contextlib
import ctypes
import mmap
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware.simdriver_cards import CardProfile, Topology, link_peers

MIB = 1 << 20
_CARD_NAMESPACE = uuid.UUID(
    "c1b3a3ac-4f0b-5cf4-9d2c-3f6a0f6f7a11"
)  # random; must never change: uuids of cards are derived from it
FIRST_WITH_LIMITS = 615  # the driver branch that has memory limits of cgroups
# What a copy of the state has beside the part before the slots, and what is used of these.
_ALWAYS = ("call_fault_count", "last_call_fault", "call_faults", "has_limits", "limits_seen")
_FIRST_PCI_DEVICE = 7  # the number of the first card on cloud machines


class SimdriverError(Exception):
    """Base class; the tree is in simdriver.py."""


class NotBuilt(SimdriverError):
    pass


class BadState(SimdriverError):
    pass


class NoSuchCard(SimdriverError):
    pass


class Driver(NamedTuple):
    version: str = "550.163.01"
    cuda: int = 12040
    kernel_us: int = 10  # how long a GPU kernel runs that does not say it itself
    context_mib: int = 0  # memory that a program's first context on a card takes

    @property
    def has_limits(self) -> bool:
        """Whether it holds cgroups to memory limits."""
        major = self.version.partition(".")[0]
        return major.isdigit() and int(major) >= FIRST_WITH_LIMITS


def driver_of(version: str) -> Driver:
    """The driver with this version, and the CUDA of its time; empty: the usual one."""
    driver = Driver(version) if version else Driver()
    return driver._replace(cuda=13040) if driver.has_limits else driver


def card_uuid(node: str, index: int) -> str:
    """Derived from node and index, so that a card keeps its uuid when its node restarts."""
    return f"GPU-{uuid.uuid5(_CARD_NAMESPACE, f'{node}/{index}')}"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[int, layout.State]]:
    """The file, and a copy of its content. Containers can write to the file: one that cuts it short
    ends every process that has it mapped (SIGBUS), and the server of a local cluster must not be
    one of these. Raises BadState."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise BadState(f"{path}: {error.strerror}") from None
    try:
        yield fd, copied(fd, path)
    finally:
        os.close(fd)


@contextlib.contextmanager
def mapped(path: Path) -> Iterator[tuple[int, layout.State]]:
    """The file, and its content as all programs see it. For commands, whose end is nobody else's.
    Raises BadState."""
    with opened(path) as (fd, _):
        yield fd, layout.State.from_buffer(mmap.mmap(fd, ctypes.sizeof(layout.State)))


def copied(fd: int, path: Path) -> layout.State:
    """The content of the file. Raises BadState, OSError.

    Most of it are slots and limits that were never used: they are not read, and their memory is
    never touched. An agent reads the file more than once a second, and the server of a local
    cluster has hundreds of agents.
    """
    size = ctypes.sizeof(layout.State)
    content = mmap.mmap(-1, size)
    begin = os.pread(fd, layout.State.slots.offset, 0)
    content.write(begin)
    version = int.from_bytes(begin[8:12], "little")
    if begin[:8] != layout.MAGIC:
        raise BadState(f"{path}: wanted the state of a simulated driver, found something else")
    # Before the size: a file of another version may also have another size.
    if version != layout.VERSION:
        raise BadState(f"{path}: wanted version {layout.VERSION}, found {version}")
    if (found := os.fstat(fd).st_size) != size:
        raise BadState(f"{path}: wanted {size} bytes, found {found}")
    state = layout.State.from_buffer(content)
    if state.card_count > layout.MAX_CARDS:
        raise BadState(f"{path}: damaged; it has {state.card_count} cards")
    with memoryview(content) as whole:

        def read(name: str, most: int = size) -> None:
            field = getattr(layout.State, name)
            part = whole[field.offset : field.offset + min(field.size, most)]
            os.preadv(fd, [part], field.offset)

        for name in _ALWAYS:
            read(name)
        read("limits", state.limits_seen * ctypes.sizeof(layout.Limit))
        if state.slots_seen:
            read("slots", state.slots_seen * ctypes.sizeof(layout.Slot))
            read("used")
            read("managed")
    return state


def new_state(node: str, cards: Sequence[CardProfile], driver: Driver) -> layout.State:
    state = layout.State()
    state.magic, state.version = layout.MAGIC, layout.VERSION
    state.size = ctypes.sizeof(layout.State)
    state.card_count, state.cuda_version = len(cards), driver.cuda
    state.driver_version = driver.version.encode()
    # One byte is left for the NUL that the C libraries expect.
    state.node = node.encode()[: layout.State.node.size - 1]
    state.kernel_ns = driver.kernel_us * 1000
    state.has_limits = driver.has_limits
    for index, profile in enumerate(cards):
        card = state.cards[index]
        _describe(card.fixed, profile, node, index)
        card.fixed.context_bytes = driver.context_mib * MIB
        for link, peer in enumerate(link_peers(profile, index, len(cards))):
            card.fixed.link_peer[link] = layout.LINK_SWITCH if peer is None else peer
        card.live.persistence_mode = 1
        card.live.ecc_mode = card.fixed.has_ecc
        card.live.power_limit_mw = card.fixed.power_limit_mw
    return state


def _describe(fixed: layout.CardFixed, profile: CardProfile, node: str, index: int) -> None:
    identity = card_uuid(node, index)
    fixed.name = profile.name.encode()[: layout.CardFixed.name.size - 1]
    fixed.uuid = identity.encode()
    fixed.serial = str(int(identity[4:12], 16)).zfill(13).encode()
    fixed.vbios = b"88.00.18.00.00"
    fixed.part_number = b"900-00000-0000-000"
    fixed.memory_bytes, fixed.bar1_bytes = profile.memory_mib * MIB, 16384 * MIB
    fixed.architecture = profile.architecture.value
    fixed.brand = 2 if profile.name.startswith("Tesla") else 14  # nvmlBrandType_t
    fixed.compute_major, fixed.compute_minor = profile.compute
    fixed.multiprocessors, fixed.cores = profile.multiprocessors, profile.cores
    fixed.memory_bus_bits, fixed.l2_bytes = profile.memory_bus_bits, profile.l2_kib * 1024
    fixed.clock_graphics_mhz, fixed.clock_memory_mhz = profile.clocks_mhz
    fixed.clock_video_mhz = profile.clocks_mhz[0] * 9 // 10
    fixed.clock_idle_mhz = 135
    lowest, limit, idle = (watts * 1000 for watts in profile.power_w)
    fixed.power_min_mw, fixed.power_limit_mw, fixed.power_idle_mw = lowest, limit, idle
    fixed.power_max_mw = limit
    fixed.temperature_idle_c, fixed.temperature_busy_c = 34, 68
    fixed.temperature_slowdown_c, fixed.temperature_shutdown_c = 87, 90
    fixed.has_ecc = 1
    fixed.has_mig, fixed.mig_instances = int(profile.mig_instances > 0), profile.mig_instances
    fixed.pci_device, fixed.pci_device_id = _FIRST_PCI_DEVICE + index, profile.pci_device_id
    fixed.pci_subsystem_id = 0x121210DE
    fixed.pcie_generation, fixed.pcie_width = profile.pcie_generation, 16
    fixed.link_count = profile.links if profile.topology is not Topology.NONE else 0
    fixed.link_version = {5: 2, 7: 3, 9: 4}.get(profile.architecture.value, 0)
    fixed.minor_number = index
    # Not 0, which would be a link to card 0.
    fixed.link_peer[:] = [layout.LINK_NONE] * len(fixed.link_peer)
