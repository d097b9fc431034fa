"""Inventory <-> the node annotation in which the agent publishes it. Versioned JSON."""

import msgspec

from gpupool.core.gpu import MIB_PER_GIB, Card, CardHealth, Inventory

VERSION = 1
MAX_CARDS = 64  # on one node; an inventory with more is refused
_MAX_BYTES = 256 * 1024  # Kubernetes' limit for all annotations together


class BadInventory(ValueError):
    """The annotation cannot be parsed, or has another version."""


class _Card(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    index: int
    uuid: str
    model: str
    memory_mib: int = msgspec.field(name="memoryMiB")
    health: CardHealth = CardHealth.HEALTHY
    reason: str = ""
    links: tuple[tuple[int, int], ...] = ()
    numa: int = -1
    outside_mib: int = msgspec.field(default=0, name="outsideMiB")


class _Document(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    version: int
    cards: tuple[_Card, ...]
    driver: str = ""
    unit_mib: int = msgspec.field(default=MIB_PER_GIB, name="unitMiB")
    boot: str = ""
    isolates: bool | None = None


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
        VERSION, cards, inventory.driver, unit_mib, inventory.boot, inventory.isolates
    )
    return msgspec.json.encode(document).decode()


def inventory_of(text: str) -> Inventory:
    """Raises BadInventory."""
    if len(text) > _MAX_BYTES:
        raise BadInventory(f"{len(text)} bytes; at most {_MAX_BYTES} are read")
    try:
        document = _DECODER.decode(text)
    except msgspec.MsgspecError as error:
        raise BadInventory(str(error)) from error
    if document.version != VERSION:
        raise BadInventory(f"version {document.version}; this program reads version {VERSION}")
    if len(document.cards) > MAX_CARDS:
        raise BadInventory(f"{len(document.cards)} cards; at most {MAX_CARDS} are read")
    if document.unit_mib < 1:
        raise BadInventory(f"a unit of {document.unit_mib} MiB")
    cards = tuple(_card(card, document.unit_mib) for card in document.cards)
    return Inventory(cards, document.driver, document.boot, document.isolates)


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
