"""Faults of simulated cards, as text (in commands) and as values.

xid=N            the driver reports XID N; 79 also loses the card, 48, 94 and 95 poison it
lost             the card falls off the bus, with no XID before
ecc=N            N more uncorrectable memory errors
ecc-corrected=N  N more corrected ones
temperature=C    the card shows this temperature; 0: the one that its load causes
memory=MIB       programs outside of the simulation hold this much of its memory
utilisation=P    and use this much of its compute, in percent
mig=1            MIG mode is on; 0: off. Only cards from Ampere on have it, others stay as they are
recover          ends all faults, as a reset does; the totals of memory errors stay

fail=CALL:ERROR  the function of libcuda or libnvidia-ml returns this error, in all programs
hang=CALL        it does not return until the card recovers

CALL is the exported name, like nvmlDeviceGetMemoryInfo_v2 or cuMemAlloc_v2, or the beginning of
names and a *. ERROR is a number or a name, like TIMEOUT or OUT_OF_MEMORY (simdriver_results.py).
Both may end in :after=N (N calls succeed before) and :times=N (then it ends by itself).
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from gpupool.hardware.simdriver_results import CUDA, NVML


class FaultKind(StrEnum):
    XID = "xid"
    LOST = "lost"
    ECC = "ecc"
    ECC_CORRECTED = "ecc-corrected"
    TEMPERATURE = "temperature"
    OUTSIDE_MEMORY = "memory"
    OUTSIDE_UTILISATION = "utilisation"
    MIG = "mig"
    FAIL = "fail"
    HANG = "hang"
    RECOVER = "recover"


class Fault(NamedTuple):
    kind: FaultKind
    value: int = 0  # of FAIL: what the call returns
    call: str = ""  # of FAIL and HANG
    after: int = 0
    times: int | None = None  # None: always


class NotAFault(ValueError):
    """A text that names no fault; the message says what was wanted."""


# XIDs after which the card is lost, and XIDs after which every program on it fails until a reset.
LOSING_XIDS = frozenset({79})
POISONING_XIDS = frozenset({48, 94, 95})
RETIRING_XIDS = frozenset({63})  # a row of memory was replaced

_CALL = re.compile(r"(?=.{1,55}$)(cu|nvml)\w*\*?", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}")

_LIMITS = {
    FaultKind.XID: (1, 9999),
    FaultKind.ECC: (1, 1 << 32),
    FaultKind.ECC_CORRECTED: (1, 1 << 32),
    FaultKind.TEMPERATURE: (0, 150),
    FaultKind.OUTSIDE_MEMORY: (0, 1 << 24),
    FaultKind.OUTSIDE_UTILISATION: (0, 100),
    FaultKind.MIG: (0, 1),
}


def parse_fault(text: str) -> Fault:
    """Raises NotAFault."""
    word, equals, number = text.partition("=")
    try:
        kind = FaultKind(word)
    except ValueError:
        known = ", ".join(_usage(kind) for kind in FaultKind)
        raise NotAFault(
            f'"{text}" is no fault; known are {known} (gpupool gpu fault --help)'
        ) from None
    if kind in (FaultKind.FAIL, FaultKind.HANG):
        return _parse_call(kind, number, text)
    if kind not in _LIMITS:
        if equals:
            raise NotAFault(f'"{word}" takes no value, found "{text}"')
        return Fault(kind)
    low, high = _LIMITS[kind]
    if not (number.isascii() and number.isdigit()):
        raise NotAFault(f'wanted {word}=N with N a whole number, found "{text}"')
    if len(number) > 11 or not low <= int(number) <= high:
        raise NotAFault(f'wanted {word}=N with N from {low} to {high}, found "{text}"')
    return Fault(kind, int(number))


def variable(faults: Iterable[Fault], card: int | None = None) -> str:
    """The value of GPUPOOL_SIM_FAULTS that gives one program these faults of calls; `card` is its
    index on the node."""
    return ";".join(
        ",".join(
            [
                f"{fault.call}={fault.value if fault.kind is FaultKind.FAIL else 'hang'}",
                *([f"after={fault.after}"] if fault.after else []),
                *([f"times={fault.times}"] if fault.times is not None else []),
                *([f"card={card}"] if card is not None else []),
            ]
        )
        for fault in faults
    )


def _parse_call(kind: FaultKind, value: str, text: str) -> Fault:
    call, *rest = value.split(":")
    if not _CALL.fullmatch(call):
        raise NotAFault(f'wanted a function like cuMemAlloc_v2 or nvmlDevice*, found "{text}"')
    error = 0
    if kind is FaultKind.FAIL:
        error = _error(call, rest.pop(0) if rest else "", text)
    options = {"after": 0, "times": None}
    for option in rest:
        name, _, number = option.partition("=")
        if name not in options or not _NUMBER.fullmatch(number):
            raise NotAFault(f'wanted after=N or times=N, found "{option}" in "{text}"')
        options[name] = int(number)
    return Fault(kind, error, call, options["after"] or 0, options["times"])


def _error(call: str, name: str, text: str) -> int:
    known = NVML if call.startswith("n") else CUDA
    if _NUMBER.fullmatch(name) and int(name):
        return int(name)
    word = name.removeprefix("NVML_ERROR_").removeprefix("CUDA_ERROR_")
    if word not in known:
        raise NotAFault(f'wanted an error like {next(iter(known))}, or its number, found "{text}"')
    return known[word]


def _usage(kind: FaultKind) -> str:
    match kind:
        case FaultKind.FAIL:
            return f"{kind}=CALL:ERROR"
        case FaultKind.HANG:
            return f"{kind}=CALL"
        case _:
            return f"{kind}=N" if kind in _LIMITS else str(kind)
