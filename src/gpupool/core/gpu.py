"""Cards, what containers ask of them, and what they get. Sizes are whole numbers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from gpupool.core.ways import Ways

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


class Wall(StrEnum):
    """What holds a container to its share. People read it under the word "isolation"."""

    DRIVER = "driver"  # a memory limit of its cgroup; the limiter is loaded as well
    LIMITER = "limiter"  # only the library in its processes
    NONE = "none"


def weakest(walls: Iterable[Wall]) -> Wall | None:
    """A pod is held as far as its least held container is. None: it shares no card."""
    return max(walls, key=list(Wall).index, default=None)


def isolation_words(wall: Wall | None) -> str:
    """The one word for it, in every table and page. `wall` None: it does not share its cards."""
    return "whole card" if wall is None else str(wall)


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
    # Where NVIDIA's NRI plugin puts its cards in: the kind of CDI device that it is told.
    cdi_kind: str = ""

    @property
    def wall(self) -> Wall | None:
        """What holds it to its share, as the allocation promises; None: it has whole cards.

        Known before the agent has said a word: a container that was promised isolation does not
        start without the limiter."""
        match self.isolation:
            case Isolation.WHOLE:
                return None
            case Isolation.NONE:
                return Wall.NONE
            case Isolation.LIMIT:
                return Wall.DRIVER if self.by_driver else Wall.LIMITER


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
    ways: Ways | None = None  # how cards get into containers; None: the agent does not tell

    def wall_of(self, uid: str, gpus: ContainerGpus) -> Wall | None:
        """What holds a container of a pod to its share; None: it has whole cards.

        The agent's word goes before the allocation's, unless it has not seen the container yet:
        then it speaks of new shares only, which the node may have stopped isolating."""
        told = dict(self.other_walls).get(uid, self.wall)
        if gpus.isolation is Isolation.LIMIT and told in (Wall.DRIVER, Wall.LIMITER):
            return told
        return gpus.wall

    def seen(self, uid: str, allocation: Allocation) -> Allocation:
        """The allocation of a pod, with what the agent says of its isolation."""
        containers = tuple(
            replace(gpus, by_driver=self.wall_of(uid, gpus) is Wall.DRIVER)
            for gpus in allocation.containers
        )
        return replace(allocation, containers=containers)
