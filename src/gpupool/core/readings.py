"""Readings: how much of each card of a node is in use at one moment, and by which containers.

Every value may be unknown (None): a card that fell off its bus tells nothing, and drivers do not
support every question on every card (vGPU, MIG, cards that share the machine's memory). Unknown is
never shown as 0.
"""

from dataclasses import dataclass

from gpupool.core.gpu import Wall


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """What one container was given of a card, and what its processes do with it.

    A container that has a share and no process is here as well: it holds a card and does nothing.
    """

    namespace: str
    pod: str
    container: str  # empty: the container is not known, only the pod
    memory_used_mib: int | None  # what its processes hold
    uid: str = ""  # of the pod
    # Its share of the card; a whole card: all of it. None: it was not given this card.
    memory_request_mib: int | None = None
    memory_limit_mib: int | None = None  # what it is held to; None: to nothing
    isolation: Wall | None = None  # what holds it to its share; None: it has the card alone
    # The most that a sample has shown since `watched_since_s`.
    memory_peak_mib: int | None = None
    # In which part of the time since the last sample its kernels ran.
    sm_percent: int | None = None
    # Since a sample last showed a kernel of it; if none has, since `watched_since_s`.
    idle_s: float | None = None
    power_mw: int | None = None  # of the card's power, the part of its kernels
    # Time of day from which on the agent has samples of it. Peak and idle time know nothing of what
    # was before: the agent, or the pod, has started then.
    watched_since_s: float | None = None


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
    memory_reserved_mib: int | None = None  # by the driver for itself
    memory_clock_mhz: int | None = None
    energy_mj: int | None = None  # millijoules since the driver was loaded
    encoder_percent: int | None = None
    decoder_percent: int | None = None
    # In which part of the time since the reading before tensor cores computed. Cards before Hopper
    # do not tell it.
    tensor_percent: int | None = None


@dataclass(frozen=True, slots=True)
class NodeReadings:
    node: str
    taken_at_s: float  # time of day, in seconds since 1970
    cards: tuple[CardReading, ...]  # those that answer, by index
