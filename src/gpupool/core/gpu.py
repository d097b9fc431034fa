"""Cards, what a container asks of them, and what it is given. Sizes are whole numbers."""

from dataclasses import dataclass
from enum import StrEnum

MIB_PER_GIB = 1024


class CardHealth(StrEnum):
    HEALTHY = "healthy"
    SUSPECT = "suspect"  # something happened; it may recover by itself. Takes no new pods.
    UNHEALTHY = "unhealthy"
    CORDONED = "cordoned"  # by a person
    LOST = "lost"  # was there, and answers no more


@dataclass(frozen=True, slots=True)
class Card:
    index: int  # as the driver counts them
    uuid: str
    model: str  # as the driver names it: Tesla V100-SXM2-16GB
    memory_mib: int
    health: CardHealth = CardHealth.HEALTHY
    reason: str = ""  # why it is not healthy, in a few words
    # (index of the other card, number of NVLinks to it); pairs without a direct link are left out.
    links: tuple[tuple[int, int], ...] = ()
    numa: int = -1  # the NUMA node it hangs on; -1: unknown
    outside_mib: int = 0  # held by processes that no pod of ours explains
    unit_mib: int = MIB_PER_GIB  # what one unit of gpu-mem counts as on this node

    @property
    def units(self) -> int:
        """How many units of gpu-mem the card has."""
        return self.memory_mib // self.unit_mib

    @property
    def takes_pods(self) -> bool:
        return self.health is CardHealth.HEALTHY


WHOLE_CARD_PERCENT = 100


def limit_mib(units: int, card: Card) -> int:
    """What so many units of a card are in MiB: an equal part of all that the card has.

    A card of 16130 MiB has 15 units, so 3 of them are 3226 MiB. Rounded down: all the units of a
    card together never pass its memory.
    """
    return units * card.memory_mib // card.units


class Isolation(StrEnum):
    LIMIT = "limit"  # the limiter holds the container to its share
    NONE = "none"  # shared, and the application must keep to its share by itself
    WHOLE = "whole"  # has its cards for itself

    @property
    def words(self) -> str:
        """As people read it: in `gpupool gpu pods`, and in the console."""
        return _ISOLATION_WORDS[self]


_ISOLATION_WORDS = {
    Isolation.LIMIT: "held to its share",
    Isolation.NONE: "not held to its share",
    Isolation.WHOLE: "whole card",
}


@dataclass(frozen=True, slots=True)
class CardShare:
    """A part of one card, or all of it, that a container holds."""

    uuid: str
    index: int
    units: int  # GiB as asked for; a whole card: all its units
    memory_mib: int
    card_units: int  # of the whole card
    percent: int = 0  # of its compute; 0: not asked for, the container takes what it gets


@dataclass(frozen=True, slots=True)
class ContainerGpus:
    container: str
    shares: tuple[CardShare, ...]
    isolation: Isolation


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a pod holds. It travels with the pod, from the Binding to the container's start."""

    containers: tuple[ContainerGpus, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What one container asks for: either whole cards, or units on each of `cards` cards."""

    container: str
    whole: int = 0
    units: int = 0  # on each card
    cards: int = 1
    percent: int = 0  # on each card
    is_init: bool = False  # runs before the others and beside none of them
    unisolated: bool = False  # would rather run without the limiter, where that is allowed


class GpuMode(StrEnum):
    """What a node's cards are given out as. No card is ever both at a time."""

    WHOLE = "whole"
    SHARED = "shared"
    ANY = "any"


class CardPlacement(StrEnum):
    BINPACK = "binpack"  # the fullest card that still has room
    SPREAD = "spread"  # the emptiest


@dataclass(frozen=True, slots=True)
class Inventory:
    """All cards of a node, as its agent sees them."""

    cards: tuple[Card, ...] = ()
    driver: str = ""
    boot: str = ""  # another one after a restart of the machine: all cards were reset
    # Whether the agent has containers with a new share held to it; None: as the labels say.
    isolates: bool | None = None
