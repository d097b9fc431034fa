"""Memory limits that the driver itself holds cgroups to: NVIDIA's driver has them since 615.

A limit belongs to one cgroup and one card. The hard limit is a wall: an allocation beyond it fails,
whatever the program loads or does not load. The soft limit is a guarantee; only an MPS server acts
on it. `nvml_limits.py` sets them through NVML, `simulated_limits.py` in the state file of a
simulated node.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

UNLIMITED = 2**64 - 1  # as a hard limit: none


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """In bytes."""

    soft: int = 0
    hard: int = UNLIMITED

    @property
    def are_set(self) -> bool:
        return self != NO_LIMITS


NO_LIMITS = MemoryLimits()


class Found(NamedTuple):
    limits: MemoryLimits
    used: int = 0  # bytes that count for the hard limit; 0 where none is set


class LimitsRefused(Exception):
    """The driver did not set or read limits; the text names the cgroup and the driver's reason."""


class LimitsUnsupported(LimitsRefused):
    """This driver has no memory limits."""


class CardLimits(Protocol):
    """What sets and reads limits. `cgroup` is the full path of its directory."""

    def set(self, cgroup: str, uuid: str, limits: MemoryLimits) -> None:
        """NO_LIMITS takes them away. Raises LimitsRefused, LimitsUnsupported."""

    def get(self, cgroup: str, uuid: str) -> "Found":
        """NO_LIMITS also where the driver has none: it does not tell the two apart, only setting
        does. Raises LimitsRefused."""
