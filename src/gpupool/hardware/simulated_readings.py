"""Readings of a simulated card from the state file, as native/simdriver/nvml/load.c computes them.

A test compares the two.
"""

import time
from collections.abc import Sequence

from gpupool.core.readings import CardReading
from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware.simdriver_state import MIB

# As in native/simdriver/engine.c: the load of a card is that of the last whole second.
_BUCKET_NS = 250_000_000
_SHOWN_BUCKETS = 4
_LOW_WORD = 0xFFFFFFFF
_HOPPER = 9  # as in native/simdriver/nvml/gpm.c


def card_reading(card: layout.Card, used_by_programs: int) -> CardReading:
    """`used_by_programs`: bytes that living processes hold."""
    fixed, fault, live = card.fixed, card.fault, card.live
    used = min(used_by_programs + fault.outside_bytes, fixed.memory_bytes)
    percent = min(100, _busy_percent(live.busy, time.monotonic_ns()) + fault.outside_percent)
    busy_mw = live.power_limit_mw * 9 // 10
    return CardReading(
        fixed.uuid.decode(),
        memory_used_mib=used // MIB,
        memory_free_mib=(fixed.memory_bytes - used) // MIB,
        memory_total_mib=fixed.memory_bytes // MIB,
        sm_percent=percent,
        memory_percent=percent // 2,
        temperature_c=fault.temperature_c
        or _by_load(percent, fixed.temperature_idle_c, fixed.temperature_busy_c),
        power_mw=_by_load(percent, fixed.power_idle_mw, busy_mw),
        power_limit_mw=live.power_limit_mw,
        sm_clock_mhz=fixed.clock_graphics_mhz if percent else fixed.clock_idle_mhz,
        memory_reserved_mib=0,
        memory_clock_mhz=fixed.clock_memory_mhz,
        energy_mj=_energy_mj(card),
        encoder_percent=0,
        decoder_percent=0,
        tensor_percent=percent // 2 if fixed.architecture >= _HOPPER else None,
    )


def program_percent(spans: Sequence[int], since_ns: int) -> int:
    """How busy a process kept a card in the last second; at least 1 if it did at all since then.
    `spans` and `since_ns`: as in native/simdriver/engine.h."""
    percent = _busy_percent(spans, time.monotonic_ns())
    first = since_ns // _BUCKET_NS
    return percent or int(any(entry & _LOW_WORD and entry >> 32 >= first for entry in spans))


def _energy_mj(card: layout.Card) -> int:
    idle, busy = card.fixed.power_idle_mw, card.fixed.power_limit_mw * 9 // 10
    worked_ms = card.live.worked_ns // 1_000_000
    now_ms = time.monotonic_ns() // 1_000_000
    return int(now_ms * idle + worked_ms * (busy - idle)) // 1000


def _by_load(percent: int, idle: int, busy: int) -> int:
    return idle + (busy - idle) * percent // 100


def _busy_percent(spans: Sequence[int], now_ns: int) -> int:
    span, total = now_ns // _BUCKET_NS, 0
    for past in range(span - _SHOWN_BUCKETS, span):
        entry = spans[past % layout.BUCKETS]
        # The upper word names the span of time that the entry is about.
        if entry >> 32 == past & _LOW_WORD:
            total += entry & _LOW_WORD
    return min(100, total * 100 // (_SHOWN_BUCKETS * _BUCKET_NS))
