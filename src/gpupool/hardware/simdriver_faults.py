"""Faults of simulated cards, as text (in commands) and as values.

xid=N            the driver reports XID N; 79 also loses the card, 48, 94 and 95 poison it
lost             the card falls off the bus, with no XID before
ecc=N            N more uncorrectable memory errors
ecc-corrected=N  N more corrected ones
temperature=C    the card shows this temperature; 0: the one that its load causes
memory=MIB       programs outside of the simulation hold this much of its memory
utilisation=P    and use this much of its compute, in percent
recover          ends all faults, as a reset does; the totals of memory errors stay
"""

from enum import StrEnum
from typing import NamedTuple


class FaultKind(StrEnum):
    XID = "xid"
    LOST = "lost"
    ECC = "ecc"
    ECC_CORRECTED = "ecc-corrected"
    TEMPERATURE = "temperature"
    OUTSIDE_MEMORY = "memory"
    OUTSIDE_UTILISATION = "utilisation"
    RECOVER = "recover"


class Fault(NamedTuple):
    kind: FaultKind
    value: int = 0


class NotAFault(ValueError):
    """A text that names no fault; the message says what was wanted."""


# XIDs after which the card is lost, and XIDs after which every program on it fails until a reset.
LOSING_XIDS = frozenset({79})
POISONING_XIDS = frozenset({48, 94, 95})
RETIRING_XIDS = frozenset({63})  # a row of memory was replaced

_LIMITS = {
    FaultKind.XID: (1, 9999),
    FaultKind.ECC: (1, 1 << 32),
    FaultKind.ECC_CORRECTED: (1, 1 << 32),
    FaultKind.TEMPERATURE: (0, 150),
    FaultKind.OUTSIDE_MEMORY: (0, 1 << 24),
    FaultKind.OUTSIDE_UTILISATION: (0, 100),
}


def parse_fault(text: str) -> Fault:
    """Raises NotAFault."""
    word, equals, number = text.partition("=")
    try:
        kind = FaultKind(word)
    except ValueError:
        known = ", ".join(_usage(kind) for kind in FaultKind)
        raise NotAFault(f'"{text}" is no fault; known are {known}') from None
    if kind not in _LIMITS:
        if equals:
            raise NotAFault(f'"{word}" takes no value, found "{text}"')
        return Fault(kind)
    low, high = _LIMITS[kind]
    if not (number.isascii() and number.isdigit() and len(number) < 12):
        raise NotAFault(f'wanted {word}=N with N a whole number, found "{text}"')
    if not low <= int(number) <= high:
        raise NotAFault(f'wanted {word}=N with N from {low} to {high}, found "{text}"')
    return Fault(kind, int(number))


def _usage(kind: FaultKind) -> str:
    return f"{kind}=N" if kind in _LIMITS else str(kind)
