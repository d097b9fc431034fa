"""Bulk: how large a machine is, as one number of 22 bits: by its cards, then CPU, then memory."""

BULKS = 2**22
_MOST_CARDS, _MOST_CPU, _MOST_MEMORY = 63, 255, 255
_CPU_STEP = 2_000  # thousandths
_MEMORY_STEP = 16 * 1024  # MiB


def bulk_of(cards: int, cpu_milli: int, memory_mib: int) -> int:
    cpu = min(cpu_milli // _CPU_STEP, _MOST_CPU)
    memory = min(memory_mib // _MEMORY_STEP, _MOST_MEMORY)
    return (min(cards, _MOST_CARDS) << 16) + (cpu << 8) + memory
