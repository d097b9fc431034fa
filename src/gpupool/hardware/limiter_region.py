"""Reads from outside what the limiter has counted in a container, before a share shrinks.

The layout is that of native/isolation/core/region.h, byte for byte; tests/native compares the two.
A file of another version is not read. The count of a process that died stays in the region until
another process of the container cleans up. So the total may be too high for a while, never too low.
"""

import ctypes
import errno
import os
import stat
from ctypes import c_char, c_uint32, c_uint64
from pathlib import Path
from typing import NamedTuple

MAGIC = b"GPUPLIM\0"
VERSION = 1
MAX_CARDS = 16
MAX_SLOTS = 512
GRANULE = 512  # bytes; the limiter counts in granules
GRANULE_BITS = 34


# A process writes the new count beside the old one and then the number of the change, so that its
# death at any instruction leaves one valid count (native/isolation/core/accounts.h).
class Account(ctypes.Structure):
    _fields_ = (
        ("granules", c_uint64 * 2),
        ("committed", c_uint32),
        ("seen", c_uint32),
        ("has_context", c_uint32),
        ("reserved", c_uint32),
    )


class Slot(ctypes.Structure):
    _fields_ = (
        ("pid", c_uint32),
        ("reserved", c_uint32),
        ("start_time", c_uint64),
        ("namespace", c_uint64),
        ("padding", c_uint64),
        ("name", c_char * 96),
        ("accounts", Account * MAX_CARDS),
    )


# The padding gives each word that changes often a cache line of its own.
class RegionCard(ctypes.Structure):
    _fields_ = (
        ("uuid", c_char * 48),
        ("padding", c_char * 16),
        ("word", c_uint64),
        ("word_padding", c_char * 56),
        ("paid_ns", c_uint64),
        ("paid_padding", c_char * 56),
    )


class Region(ctypes.Structure):
    _fields_ = (
        ("magic", c_char * 8),
        ("version", c_uint32),
        ("size", c_uint32),
        ("card_count", c_uint32),
        ("slots_seen", c_uint32),
        ("padding", c_char * 40),
        ("cards", RegionCard * MAX_CARDS),
        ("slots", Slot * MAX_SLOTS),
    )


class BadRegion(Exception):
    """The file is not a region of this version."""


class ProcessUse(NamedTuple):
    pid: int  # in the container's own pid namespace
    name: str
    used_bytes: int


class CardUse(NamedTuple):
    uuid: str
    used_bytes: int
    processes: tuple[ProcessUse, ...]


def read_region(path: Path) -> tuple[CardUse, ...]:
    """What the container uses of each card; empty if no process has started. Raises BadRegion."""
    try:
        content = _content(path)
    except FileNotFoundError:
        return ()
    region = Region.from_buffer_copy(content)
    # Not `region.magic`: ctypes ends text at the first NUL, and the magic ends with one.
    if bytes(content[:8]) != MAGIC or region.version != VERSION:
        raise BadRegion(f"{path}: wanted version {VERSION}, found {region.version}")
    # Any program of the container may have written any number here.
    count = min(region.card_count, MAX_CARDS)
    return tuple(_card_use(region, number) for number in range(count))


def _content(path: Path) -> bytes:
    """Programs of the container may have put anything at this path, and we read it as root. So
    links are not followed, pipes and devices do not block, and no more is read than a region has.
    Raises BadRegion, OSError."""
    # O_NOFOLLOW concerns the last part of the path only. That is enough: the directory is the
    # volume itself, which the container cannot replace.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    wanted = ctypes.sizeof(Region)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadRegion(f"{path}: wanted a file, found a link") from error
        raise
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size != wanted:
            raise BadRegion(f"{path}: wanted {wanted} bytes, found {status.st_size}")
        # The container may have cut the file since it was measured.
        return file.read(wanted).ljust(wanted, b"\0")


def _card_use(region: Region, number: int) -> CardUse:
    card = region.cards[number]
    processes = []
    # Slots from `slots_seen` on were never used; the number is as little trusted as the others.
    for slot in region.slots[: min(region.slots_seen, MAX_SLOTS)]:
        account = slot.accounts[number]
        used = account.granules[account.committed % 2] * GRANULE
        if slot.pid and (used or account.has_context):
            name = slot.name.decode(errors="replace")
            processes.append(ProcessUse(slot.pid, name, used))
    granules = card.word >> (64 - GRANULE_BITS)
    return CardUse(card.uuid.decode(errors="replace"), granules * GRANULE, tuple(processes))
