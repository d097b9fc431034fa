"""NodeReadings <-> what an agent answers when it is asked for its readings. Versioned JSON.

Whoever asks does not trust the answer: its size, its numbers and the length of its names are
bounded.
"""

from typing import Annotated

import msgspec

from gpupool.contract.documents import CardUuid, Mib, Percent, document_of
from gpupool.contract.inventory import MAX_CARDS
from gpupool.core.readings import CardReading, ContainerUse, NodeReadings

VERSION = 1
PATH = "/readings"  # of the agent's HTTP endpoint
# 64 cards, with some hundred containers on each.
MOST_BYTES = 4 * 1024 * 1024
_MOST_CONTAINERS = 4096  # on one card

_Name = Annotated[str, msgspec.Meta(max_length=253)]
_Celsius = Annotated[int, msgspec.Meta(ge=-273, le=10_000)]
_Milliwatts = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Megahertz = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=2**40)]


class BadReadings(ValueError):
    """The answer cannot be parsed, has another version, or describes no real node."""


class _Container(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    namespace: _Name
    pod: _Name
    memory_used_mib: Mib = msgspec.field(name="memoryUsedMiB")
    container: _Name = ""


_Containers = Annotated[tuple[_Container, ...], msgspec.Meta(max_length=_MOST_CONTAINERS)]


class _Card(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is unknown is left out."""

    uuid: CardUuid
    memory_used_mib: Mib | None = msgspec.field(default=None, name="memoryUsedMiB")
    memory_free_mib: Mib | None = msgspec.field(default=None, name="memoryFreeMiB")
    memory_total_mib: Mib | None = msgspec.field(default=None, name="memoryTotalMiB")
    sm_percent: Percent | None = None
    memory_percent: Percent | None = None
    temperature_c: _Celsius | None = msgspec.field(default=None, name="temperatureCelsius")
    power_mw: _Milliwatts | None = msgspec.field(default=None, name="powerMilliwatts")
    power_limit_mw: _Milliwatts | None = msgspec.field(default=None, name="powerLimitMilliwatts")
    sm_clock_mhz: _Megahertz | None = msgspec.field(default=None, name="smClockMHz")
    containers: _Containers | None = None


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    version: int
    node: _Name
    taken_at_s: _Seconds = msgspec.field(name="takenAtSeconds")
    cards: Annotated[tuple[_Card, ...], msgspec.Meta(max_length=MAX_CARDS)]


def readings_text(readings: NodeReadings) -> str:
    cards = tuple(_card(card) for card in readings.cards)
    document = _Document(VERSION, readings.node, readings.taken_at_s, cards)
    return msgspec.json.encode(document).decode()


def _card(card: CardReading) -> _Card:
    return _Card(
        card.uuid,
        card.memory_used_mib,
        card.memory_free_mib,
        card.memory_total_mib,
        card.sm_percent,
        card.memory_percent,
        card.temperature_c,
        card.power_mw,
        card.power_limit_mw,
        card.sm_clock_mhz,
        None if card.containers is None else tuple(map(_container, card.containers)),
    )


def _container(use: ContainerUse) -> _Container:
    return _Container(use.namespace, use.pod, use.memory_used_mib, use.container)


def readings_of(text: str) -> NodeReadings:
    """Raises BadReadings."""
    # Apart, and first: a document of another version may have other fields.
    version = document_of(_VERSIONS, text, BadReadings, MOST_BYTES).version
    if version != VERSION:
        raise BadReadings(f"version {version}; this program reads version {VERSION}")
    document = document_of(_DECODER, text, BadReadings, MOST_BYTES)
    cards = tuple(_card_reading(card) for card in document.cards)
    return NodeReadings(document.node, document.taken_at_s, cards)


def _card_reading(card: _Card) -> CardReading:
    return CardReading(
        uuid=card.uuid,
        memory_used_mib=card.memory_used_mib,
        memory_free_mib=card.memory_free_mib,
        memory_total_mib=card.memory_total_mib,
        sm_percent=card.sm_percent,
        memory_percent=card.memory_percent,
        temperature_c=card.temperature_c,
        power_mw=card.power_mw,
        power_limit_mw=card.power_limit_mw,
        sm_clock_mhz=card.sm_clock_mhz,
        containers=None if card.containers is None else tuple(map(_use, card.containers)),
    )


def _use(use: _Container) -> ContainerUse:
    return ContainerUse(use.namespace, use.pod, use.container, use.memory_used_mib)


class _Versioned(msgspec.Struct, frozen=True):
    version: int


_VERSIONS = msgspec.json.Decoder(_Versioned)
_DECODER = msgspec.json.Decoder(_Document)
