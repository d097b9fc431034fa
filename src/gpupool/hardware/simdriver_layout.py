"""The state file of a node's simulated driver, byte for byte as native/simdriver/layout.h has it.

tests/native compares the two. Whoever changes one changes the other, and raises VERSION in both.
"""

import ctypes
from ctypes import c_char, c_int32, c_uint8, c_uint32, c_uint64

MAGIC = b"GPUPSIM\0"
VERSION = 4
MAX_CARDS = 16
MAX_SLOTS = 512
MAX_EVENTS = 256
MAX_LINKS = 18
MAX_CALL_FAULTS = 32
MAX_LIMITS = 512
PLACE_BYTES = 320
BUCKETS = 8
MIG_ON = 2  # of CardFixed.has_mig: the mode is on; 1: the card has it

# Locks are on bytes far behind the end of the file, where there is no data; 2 << 40 is LOCK_CARD,
# which only the libraries take.
LOCK_INJECT = 1 << 40
LOCK_SLOT = 3 << 40
LOCK_OWNER = 4 << 40
LOCK_LIMITS = 5 << 40

LINK_NONE = 255
LINK_SWITCH = 254

# Of a call fault.
EVERY_CARD = -1
CALL_HANGS = -1
ALWAYS = 0xFFFFFFFF

NO_LIMIT = 0xFFFFFFFFFFFFFFFF  # of memory


def _words(*names: str) -> list[tuple[str, type[c_uint32]]]:
    return [(name, c_uint32) for name in names]


def _longs(*names: str) -> list[tuple[str, type[c_uint64]]]:
    return [(name, c_uint64) for name in names]


class CardFixed(ctypes.Structure):
    """What a card is."""

    _fields_ = (
        ("name", c_char * 96),
        ("uuid", c_char * 48),
        ("serial", c_char * 24),
        ("vbios", c_char * 24),
        ("part_number", c_char * 32),
        *_longs("memory_bytes", "bar1_bytes"),
        *_words("architecture", "brand", "compute_major", "compute_minor"),
        *_words("multiprocessors", "cores", "memory_bus_bits", "l2_bytes"),
        *_words("clock_graphics_mhz", "clock_memory_mhz", "clock_video_mhz", "clock_idle_mhz"),
        *_words("power_limit_mw", "power_min_mw", "power_max_mw", "power_idle_mw"),
        *_words("temperature_idle_c", "temperature_busy_c"),
        *_words("temperature_slowdown_c", "temperature_shutdown_c"),
        *_words("has_fan", "has_ecc", "has_mig", "mig_instances"),
        *_words("pci_domain", "pci_bus", "pci_device", "pci_device_id", "pci_subsystem_id"),
        *_words("pcie_generation", "pcie_width", "link_count", "link_version"),
        *_words("numa_node", "minor_number", "context_bytes"),
        ("link_peer", c_uint8 * 24),
    )


class CardFault(ctypes.Structure):
    """What the injector says about a card."""

    _fields_ = (
        *_words("is_lost", "is_poisoned", "last_xid", "temperature_c"),
        *_longs("ecc_corrected_volatile", "ecc_uncorrected_volatile"),
        *_longs("ecc_corrected_aggregate", "ecc_uncorrected_aggregate"),
        *_longs("retired_pages", "outside_bytes"),
        *_words("outside_percent", "reserved"),
    )


class CardLive(ctypes.Structure):
    """What programs did to a card."""

    _fields_ = (
        *_words("persistence_mode", "compute_mode", "power_limit_mw", "ecc_mode"),
        *_longs("engine_free_ns", "worked_ns"),
        ("busy", c_uint64 * BUCKETS),
    )


class Card(ctypes.Structure):
    """One card."""

    _fields_ = (("fixed", CardFixed), ("fault", CardFault), ("live", CardLive))


class Slot(ctypes.Structure):
    """One process that has used CUDA."""

    _fields_ = (
        *_words("pid", "contexts"),
        *_longs("start_time", "namespace"),
        ("name", c_char * 64),
        ("place", c_char * PLACE_BYTES),
        ("busy", c_uint64 * BUCKETS * MAX_CARDS),
    )


class Event(ctypes.Structure):
    """One entry of the ring of events."""

    _fields_ = (
        *_longs("sequence", "data"),
        *_words("card", "type"),
        *_longs("time_ns"),
    )


class CallFault(ctypes.Structure):
    """A call that fails on request."""

    _fields_ = (
        ("call", c_char * 56),
        *_words("id"),
        ("card", c_int32),
        ("result", c_int32),
        *_words("after", "times", "reserved"),
    )


class Limit(ctypes.Structure):
    """The memory limits of one cgroup."""

    _fields_ = (
        ("place", c_char * PLACE_BYTES),
        *_longs("cgroup"),
        *_words("is_set", "reserved"),
        ("soft", c_uint64 * MAX_CARDS),
        ("hard", c_uint64 * MAX_CARDS),
    )


class State(ctypes.Structure):
    """The whole file."""

    _fields_ = (
        ("magic", c_char * 8),
        *_words("version", "size", "card_count", "cuda_version"),
        ("driver_version", c_char * 32),
        ("node", c_char * 64),
        *_longs("kernel_ns", "last_event"),
        *_words("event_futex", "slots_seen"),
        ("cards", Card * MAX_CARDS),
        ("events", Event * MAX_EVENTS),
        ("slots", Slot * MAX_SLOTS),
        ("used", c_uint64 * MAX_SLOTS * MAX_CARDS),
        *_words("call_fault_count", "last_call_fault"),
        ("call_faults", CallFault * MAX_CALL_FAULTS),
        *_words("has_limits", "limits_seen"),
        ("limits", Limit * MAX_LIMITS),
        ("managed", c_uint64 * MAX_SLOTS * MAX_CARDS),
    )
