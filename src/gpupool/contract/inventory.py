"""Inventory <-> the node annotation in which the agent publishes it. Versioned JSON."""

import msgspec

from gpupool.contract.documents import (
    MOST_UNITS,
    CardUuid,
    Mib,
    NumaNode,
    Number,
    UnitMib,
    document_of,
)
from gpupool.core.gpu import MIB_PER_GIB, Card, CardHealth, Inventory, Wall
from gpupool.core.ways import Way, Ways

VERSION = 1
MAX_CARDS = 64  # on one node; an inventory with more is refused


class BadInventory(ValueError):
    """The annotation cannot be parsed, has another version, or describes no real node."""


class _Card(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    index: Number
    uuid: CardUuid
    model: str
    memory_mib: Mib = msgspec.field(name="memoryMiB")
    health: CardHealth = CardHealth.HEALTHY
    reason: str = ""
    links: tuple[tuple[Number, Number], ...] = ()
    numa: NumaNode = -1
    outside_mib: Mib = msgspec.field(default=0, name="outsideMiB")


class _Ways(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    chosen: str = ""
    problem: str = ""
    known: tuple[str, ...] = ()
    runtime_class: str = ""
    cdi_kind: str = ""
    pinned: bool = False
    since: str = ""
    checks_starts: bool = False


class _Document(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    version: int
    cards: tuple[_Card, ...]
    driver: str = ""
    unit_mib: UnitMib = msgspec.field(default=MIB_PER_GIB, name="unitMiB")
    boot: str = ""
    isolates: bool | None = None
    isolation: str = ""
    other_isolations: dict[str, str] = msgspec.field(default_factory=dict)
    ways: _Ways | None = None


def inventory_text(inventory: Inventory) -> str:
    unit_mib = inventory.cards[0].unit_mib if inventory.cards else MIB_PER_GIB
    cards = tuple(
        _Card(
            card.index,
            card.uuid,
            card.model,
            card.memory_mib,
            card.health,
            card.reason,
            card.links,
            card.numa,
            card.outside_mib,
        )
        for card in inventory.cards
    )
    document = _Document(
        VERSION,
        cards,
        inventory.driver,
        unit_mib,
        inventory.boot,
        inventory.isolates,
        inventory.wall or "",
        dict(inventory.other_walls),
        None if inventory.ways is None else _written(inventory.ways),
    )
    return msgspec.json.encode(document).decode()


def inventory_of(text: str) -> Inventory:
    """Raises BadInventory."""
    document = document_of(_DECODER, text, BadInventory)
    if document.version != VERSION:
        raise BadInventory(f"version {document.version}; this program reads version {VERSION}")
    if len(document.cards) > MAX_CARDS:
        raise BadInventory(f"{len(document.cards)} cards; at most {MAX_CARDS} are read")
    cards = tuple(_card(card, document.unit_mib) for card in document.cards)
    _check(cards)
    return Inventory(
        cards,
        document.driver,
        document.boot,
        document.isolates,
        _wall(document.isolation),
        tuple(
            (uid, wall)
            for uid, text in sorted(document.other_isolations.items())
            if (wall := _wall(text)) is not None
        ),
        None if document.ways is None else _ways(document.ways),
    )


def _wall(text: str) -> Wall | None:
    """None also for a wall that only a newer agent knows."""
    return Wall(text) if text in list(Wall) else None


def _written(ways: Ways) -> _Ways:
    return _Ways(
        str(ways.chosen or ""),
        ways.problem,
        tuple(map(str, ways.known)),
        ways.runtime_class,
        ways.cdi_kind,
        ways.is_pinned,
        ways.since,
        ways.checks_starts,
    )


def _ways(ways: _Ways) -> Ways:
    """A way that only a newer agent knows cannot be served: its node gets no pods from us."""
    problem = ways.problem
    if ways.chosen and _way(ways.chosen) is None:
        problem = f"this program does not know the way {ways.chosen}; upgrade it"
    known = tuple(way for text in ways.known if (way := _way(text)) is not None)
    return Ways(
        _way(ways.chosen),
        problem,
        known,
        ways.runtime_class,
        ways.cdi_kind,
        ways.pinned,
        ways.since,
        ways.checks_starts,
    )


def _way(text: str) -> Way | None:
    return Way(text) if text in list(Way) else None


def _check(cards: tuple[Card, ...]) -> None:
    by_uuid: dict[str, Card] = {}
    for card in cards:
        if card.units > MOST_UNITS:
            raise BadInventory(
                f"{card.units} units on card {card.index}; at most {MOST_UNITS} are read"
            )
        # What pods hold is counted by uuid: of two cards with one uuid, one would look free.
        other = by_uuid.setdefault(card.uuid, card)
        if other is not card:
            raise BadInventory(f"cards {other.index} and {card.index} have one uuid, {card.uuid}")


def _card(card: _Card, unit_mib: int) -> Card:
    return Card(
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        memory_mib=card.memory_mib,
        health=card.health,
        reason=card.reason,
        links=card.links,
        numa=card.numa,
        outside_mib=card.outside_mib,
        unit_mib=unit_mib,
    )


_DECODER = msgspec.json.Decoder(_Document)
