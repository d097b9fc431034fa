"""NodeReadings <-> what an agent answers when it is asked for its readings. Versioned JSON.

Whoever asks does not trust the answer: its size, its numbers and the length of its names are
bounded.
"""

from typing import Annotated, Any

import msgspec

from gpupool.contract.documents import CardUuid, Mib, Percent, document_of
from gpupool.contract.inventory import MAX_CARDS
from gpupool.core.gpu import Wall
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
_Millijoules = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class BadReadings(ValueError):
    """The answer cannot be parsed, has another version, or describes no real node."""


class _Container(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    namespace: _Name
    pod: _Name
    memory_used_mib: Mib | None = msgspec.field(default=None, name="memoryUsedMiB")
    container: _Name = ""
    uid: _Name = ""
    memory_request_mib: Mib | None = msgspec.field(default=None, name="memoryRequestMiB")
    memory_limit_mib: Mib | None = msgspec.field(default=None, name="memoryLimitMiB")
    isolation: Wall | None = None
    memory_peak_mib: Mib | None = msgspec.field(default=None, name="memoryPeakMiB")
    sm_percent: Percent | None = None
    idle_s: _Seconds | None = msgspec.field(default=None, name="idleSeconds")
    power_mw: _Milliwatts | None = msgspec.field(default=None, name="powerMilliwatts")
    watched_since_s: _Seconds | None = msgspec.field(default=None, name="watchedSinceSeconds")


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
    memory_reserved_mib: Mib | None = msgspec.field(default=None, name="memoryReservedMiB")
    memory_clock_mhz: _Megahertz | None = msgspec.field(default=None, name="memoryClockMHz")
    energy_mj: _Millijoules | None = msgspec.field(default=None, name="energyMillijoules")
    encoder_percent: Percent | None = None
    decoder_percent: Percent | None = None
    tensor_percent: Percent | None = None


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
    fields = _fields(card, CardReading)
    uses = card.containers
    fields["containers"] = None if uses is None else tuple(map(_container, uses))
    return _Card(**fields)


def _container(use: ContainerUse) -> _Container:
    return _Container(**_fields(use, ContainerUse))


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
    fields = _fields(card, CardReading)
    uses = card.containers
    fields["containers"] = None if uses is None else tuple(map(_use, uses))
    return CardReading(**fields)


def _use(use: _Container) -> ContainerUse:
    return ContainerUse(**_fields(use, ContainerUse))


def _fields(value: object, kind: type[CardReading | ContainerUse]) -> dict[str, Any]:
    """Values and documents have the same fields, under the same names."""
    return {name: getattr(value, name) for name in kind.__slots__}


class _Versioned(msgspec.Struct, frozen=True):
    version: int


_VERSIONS = msgspec.json.Decoder(_Versioned)
_DECODER = msgspec.json.Decoder(_Document)
