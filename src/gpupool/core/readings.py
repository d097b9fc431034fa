"""Readings: how much of each card of a node is in use at one moment, and by which containers.

Every value may be unknown (None): a card that fell off its bus tells nothing, and drivers do not
support every question on every card (vGPU, MIG, cards that share the machine's memory). Unknown is
never shown as 0.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """What the processes of one container hold of a card."""

    namespace: str
    pod: str
    container: str  # empty: the container is not known, only the pod
    memory_used_mib: int


@dataclass(frozen=True, slots=True)
class CardReading:
    uuid: str
    memory_used_mib: int | None = None  # by programs; without what the driver reserves for itself
    memory_free_mib: int | None = None
    memory_total_mib: int | None = None
    # Of the last moments, up to a second: in which part of them a kernel ran, and in which part
    # memory was read or written.
    sm_percent: int | None = None
    memory_percent: int | None = None
    temperature_c: int | None = None
    power_mw: int | None = None
    power_limit_mw: int | None = None
    sm_clock_mhz: int | None = None
    # Sorted by namespace, pod and container. None: the driver does not tell what processes hold.
    containers: tuple[ContainerUse, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeReadings:
    node: str
    taken_at_s: float  # time of day, in seconds since 1970
    cards: tuple[CardReading, ...]  # those that answer, by index
