"""Kubernetes quantities ("100m", "1Gi", "1e3") as exact whole numbers of 1/1,000,000,000.

A quantity remembers its family (decimal suffix, binary suffix, exponent) and its stored text, which
is the text that a Kubernetes API server would store for the same input: `canonical("1024Mi")` is
"1Gi". Input that is already in that form keeps its spelling ("+1", "0100m"), as there.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

NANOS = 10**9
NANOS_PER_MILLI = 10**6
FORMAT_WRONG = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMBER_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"

_DECIMAL_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_DECIMAL_EXPONENTS = {suffix: 3 * place - 9 for place, suffix in enumerate(_DECIMAL_SUFFIXES)}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES = ("", *_BINARY_EXPONENTS)
# No two parts can take the same character, so the time is linear.
_PARTS = re.compile(
    r"([+-]?)0*((?:[1-9][0-9]*)?)(\.[0-9]*)?"
    r"((?:[eEinumkKMGTP]+(?:[-+]?[0-9]+|[-+])?|[-+][0-9]*)?)",
    re.ASCII,
)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_BINARY_MAX = (2**63 - 1) * NANOS
# Longer input is refused: 10**exponent would fill the memory.
_LONGEST_TEXT = 1000
_LARGEST_EXPONENT = 1000
_LONGEST_CACHED = 64


class Format(Enum):
    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class ParseError(ValueError):
    """The text is not a quantity; the message is that of Kubernetes."""


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """Equal and ordered by amount alone: 1 == 1000m."""

    nanos: int
    format: Format = field(compare=False)
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Parts:
    negative: bool
    whole: str
    fraction: str
    exponent: int
    format: Format


def of_nanos(nanos: int, format: Format = Format.DECIMAL_SI) -> Quantity:
    return Quantity(nanos, format, _formatted(nanos, format))


def parse(text: str) -> Quantity:
    """Raises ParseError."""
    if len(text) > _LONGEST_CACHED:
        return _parsed(text)
    return _cached(text)


def canonical(value: str | int | float) -> str:
    """What is stored for `value`, which may be a JSON number. Raises ParseError."""
    return parse(value if isinstance(value, str) else repr(value)).text


def to_milli(quantity: Quantity) -> Quantity:
    """Rounded away from zero to thousandths, as resource lists are."""
    if quantity.nanos % NANOS_PER_MILLI == 0:
        return quantity
    return of_nanos(_divided(quantity.nanos, NANOS_PER_MILLI) * NANOS_PER_MILLI, quantity.format)


def milli_value(quantity: Quantity) -> int:
    """In thousandths, rounded away from zero."""
    return _divided(quantity.nanos, NANOS_PER_MILLI)


def value(quantity: Quantity) -> int:
    """In whole units, rounded away from zero."""
    return _divided(quantity.nanos, NANOS)


def add(left: Quantity, right: Quantity) -> Quantity:
    # As in Kubernetes: a sum with zero has the format of the other one.
    return of_nanos(left.nanos + right.nanos, (left if left.nanos else right).format)


def subtract(left: Quantity, right: Quantity) -> Quantity:
    return of_nanos(left.nanos - right.nanos, (left if left.nanos else right).format)


def _parsed(text: str) -> Quantity:
    text = text.strip()
    parts = _split(text)
    digits = int(parts.whole + parts.fraction)
    if parts.format is Format.BINARY_SI:
        scaled, power = digits << parts.exponent, 9 - len(parts.fraction)
    else:
        scaled, power = digits, 9 + parts.exponent - len(parts.fraction)
    # Kubernetes has nothing smaller than a nano, and rounds away from zero.
    nanos = scaled * 10**power if power >= 0 else -(-scaled // 10**-power)
    format = parts.format
    if format is Format.BINARY_SI:
        nanos = min(nanos, _BINARY_MAX)
        if 0 < nanos < NANOS:
            format = Format.DECIMAL_SI
    nanos = -nanos if parts.negative else nanos
    return Quantity(nanos, format, text if _keeps(parts) else _formatted(nanos, format))


_cached = lru_cache(maxsize=16_384)(_parsed)


def _split(text: str) -> _Parts:
    found = _PARTS.fullmatch(text)
    if found is None or not text:
        raise ParseError(FORMAT_WRONG)
    if len(text) > _LONGEST_TEXT:
        raise ParseError(NUMBER_WRONG)
    sign, whole, fraction, suffix = found.groups(default="")
    exponent, format = _interpreted(suffix)
    return _Parts(sign == "-", whole or "0", fraction[1:], exponent, format)


def _interpreted(suffix: str) -> tuple[int, Format]:
    if (exponent := _DECIMAL_EXPONENTS.get(suffix)) is not None:
        return exponent, Format.DECIMAL_SI
    if (exponent := _BINARY_EXPONENTS.get(suffix)) is not None:
        return exponent, Format.BINARY_SI
    found = _EXPONENT.fullmatch(suffix)
    if found is None or abs(int(found[1])) > _LARGEST_EXPONENT:
        raise ParseError(SUFFIX_WRONG)
    return int(found[1]), Format.DECIMAL_EXPONENT


def _keeps(parts: _Parts) -> bool:
    """Whether Kubernetes takes the text for canonical (and thus keeps signs and leading zeros)."""
    digits = parts.whole + parts.fraction
    if parts.format is Format.BINARY_SI:
        room = 14 - len(parts.whole) - parts.exponent * 3 // 10
        return room >= 0 and not parts.fraction and int(digits) & 7 != 0
    scale = parts.exponent - len(parts.fraction)
    if len(digits) > 18 or scale < -9 or scale % 3 != 0:
        return False
    return digits[0] != "0" and not digits.endswith("000")


def _formatted(nanos: int, format: Format) -> str:
    if nanos == 0:
        return "0"
    # Small and fractional binary amounts are shown as decimals, to lose nothing.
    if format is Format.BINARY_SI and (abs(nanos) < 1024 * NANOS or nanos % NANOS):
        format = Format.DECIMAL_SI
    if format is Format.BINARY_SI:
        amount, power = _reduced(nanos // NANOS, 1024, len(_BINARY_SUFFIXES) - 1)
        return f"{amount}{_BINARY_SUFFIXES[power]}"
    if format is Format.DECIMAL_SI:
        amount, power = _reduced(nanos, 1000, 9)
        return f"{amount}{_DECIMAL_SUFFIXES[power]}"
    amount, power = _reduced(nanos, 1000, len(str(nanos)))
    return f"{amount}e{power * 3 - 9}" if power != 3 else str(amount)


def _reduced(amount: int, base: int, most: int) -> tuple[int, int]:
    """`amount` without its factors of `base`, and how many (at most `most`) there were."""
    times = 0
    while times < most and amount % base == 0:
        amount //= base
        times += 1
    return amount, times


def _divided(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount >= 0 else amount // divisor
