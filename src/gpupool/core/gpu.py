"""Cards, what containers ask of them, and what they get. Sizes are whole numbers."""

from dataclasses import dataclass
from enum import StrEnum

MIB_PER_GIB = 1024


class CardHealth(StrEnum):
    HEALTHY = "healthy"
    SUSPECT = "suspect"  # an error that may go away by itself; takes no new pods
    UNHEALTHY = "unhealthy"
    CORDONED = "cordoned"  # by a person
    LOST = "lost"  # does not answer any more


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
    numa: int = -1  # its NUMA node; -1: unknown
    outside_mib: int = 0  # in use by processes that belong to no pod
    unit_mib: int = MIB_PER_GIB  # the size of one unit of gpu-mem on this node

    @property
    def units(self) -> int:
        """How many units of gpu-mem the card has."""
        return self.memory_mib // self.unit_mib

    @property
    def takes_pods(self) -> bool:
        return self.health is CardHealth.HEALTHY


WHOLE_CARD_PERCENT = 100


def limit_mib(units: int, card: Card) -> int:
    """The memory of `units` units of a card: all units of a card are equal parts of its memory.

    A card of 16130 MiB has 15 units, so 3 of them are 3226 MiB. Rounded down, so that all units of
    a card together never exceed its memory.
    """
    return units * card.memory_mib // card.units


class Isolation(StrEnum):
    LIMIT = "limit"  # the limiter enforces the share
    NONE = "none"  # shared without the limiter: the application must limit itself
    WHOLE = "whole"  # has its cards alone

    @property
    def words(self) -> str:
        """As people read it: in `gpupool gpu pods`, and in the console."""
        return _ISOLATION_WORDS[self]


_ISOLATION_WORDS = {
    Isolation.LIMIT: "held to its share",
    Isolation.NONE: "not held to its share",
    Isolation.WHOLE: "whole card",
}


class Wall(StrEnum):
    """What holds a container to its share."""

    DRIVER = "driver"  # a memory limit of its cgroup; the limiter is loaded as well
    LIMITER = "limiter"  # only the library in its processes
    NONE = "none"

    @property
    def words(self) -> str:
        return _WALL_WORDS[self]


_WALL_WORDS = {
    Wall.DRIVER: "held by the driver",
    Wall.LIMITER: "held by the limiter",
    Wall.NONE: "held by nothing",
}


@dataclass(frozen=True, slots=True)
class CardShare:
    """What a container holds of one card."""

    uuid: str
    index: int
    units: int  # GiB as asked for; a whole card: all its units
    memory_mib: int
    card_units: int  # of the whole card
    percent: int = 0  # of its compute; 0: no guarantee and no limit


@dataclass(frozen=True, slots=True)
class ContainerGpus:
    container: str
    shares: tuple[CardShare, ...]
    isolation: Isolation
    by_driver: bool = False  # when it was bound, its node's driver held shares itself


@dataclass(frozen=True, slots=True)
class Unread:
    """A bound pod may hold cards that its allocation does not tell.

    `uuids` and `indexes` name the cards that may be meant. Both empty: any card of its node.
    """

    why: str
    uuids: frozenset[str] = frozenset()
    indexes: frozenset[int] = frozenset()
    # On the cards of `indexes` it holds what it asks for. False: nobody knows how much.
    has_what_it_asks: bool = False


@dataclass(frozen=True, slots=True)
class Allocation:
    """The cards of a pod. Written with the Binding, read when the containers start."""

    containers: tuple[ContainerGpus, ...] = ()
    unread: Unread | None = None  # what it may hold beside these


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What one container asks for: either whole cards, or units on each of `cards` cards."""

    container: str
    whole: int = 0
    units: int = 0  # on each card
    cards: int = 1
    percent: int = 0  # on each card
    is_init: bool = False  # runs before the others, not beside them
    unisolated: bool = False  # asks to run without the limiter, where the node allows that


class GpuMode(StrEnum):
    """Whether a node's cards are given out whole or shared. No card is both at the same time."""

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
    boot: str = ""  # boot id: it changes when the machine restarts, which resets all cards
    # Whether the agent puts new shares under the limiter; None: as the node's labels say.
    isolates: bool | None = None
    # What holds the isolated shares of this node; None: its cards are not shared, or the agent is
    # older than walls. `other_walls`: pods that something else holds, by uid.
    wall: Wall | None = None
    other_walls: tuple[tuple[str, Wall], ...] = ()

    def wall_of(self, uid: str, isolation: Isolation) -> Wall | None:
        """What holds a pod to its share; None: it has whole cards, or nobody knows."""
        if isolation is not Isolation.LIMIT:
            return Wall.NONE if isolation is Isolation.NONE else None
        return dict(self.other_walls).get(uid, self.wall)
