"""Readings of a simulated card from the state file, as native/simdriver/nvml/load.c computes them.

A test compares the two.
"""

import time

from gpupool.core.readings import CardReading
from gpupool.hardware import simdriver_layout as layout
from gpupool.hardware.simdriver_state import MIB

# As in native/simdriver/engine.c: the load of a card is that of the last whole second.
_BUCKET_NS = 250_000_000
_SHOWN_BUCKETS = 4
_LOW_WORD = 0xFFFFFFFF


def card_reading(card: layout.Card, used_by_programs: int) -> CardReading:
    """`used_by_programs`: bytes that living processes hold."""
    fixed, fault, live = card.fixed, card.fault, card.live
    used = min(used_by_programs + fault.outside_bytes, fixed.memory_bytes)
    percent = min(100, _busy_percent(live, time.monotonic_ns()) + fault.outside_percent)
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
    )


def _by_load(percent: int, idle: int, busy: int) -> int:
    return idle + (busy - idle) * percent // 100


def _busy_percent(live: layout.CardLive, now_ns: int) -> int:
    span, total = now_ns // _BUCKET_NS, 0
    for past in range(span - _SHOWN_BUCKETS, span):
        entry = live.busy[past % layout.BUCKETS]
        # The upper word names the span of time that the entry is about.
        if entry >> 32 == past & _LOW_WORD:
            total += entry & _LOW_WORD
    return min(100, total * 100 // (_SHOWN_BUCKETS * _BUCKET_NS))
