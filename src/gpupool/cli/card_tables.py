"""The tables of `gpupool gpu`: cards, and what pods hold of them. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpupool.cli.output.table import Column, Document, Shorten, Table, Tone
from gpupool.contract.gpu_asks import gpu_asks
from gpupool.contract.held_allocation import held_allocation
from gpupool.core.gpu import (
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    Inventory,
    Wall,
    isolation_words,
)
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.core.ways import Ways
from kubeclient.objects import Obj

UNKNOWN = "unknown"
_HEALTH_TONES = {
    CardHealth.HEALTHY: Tone.GOOD,
    CardHealth.SUSPECT: Tone.CAUTION,
    CardHealth.CORDONED: Tone.CAUTION,
    CardHealth.UNHEALTHY: Tone.BAD,
    CardHealth.LOST: Tone.BAD,
}
_STATUS_TONES = {
    "Running": Tone.GOOD,
    "Pending": Tone.CAUTION,
    "Terminating": Tone.CAUTION,
    "Failed": Tone.BAD,
    "Succeeded": Tone.FAINT,
}


@dataclass(frozen=True, slots=True)
class CardRow:
    node: str
    card: Card
    reading: CardReading | None = None  # None: nothing is known
    wall: Wall | None = None  # what holds shares of its node; None: it shares none, or unknown
    ways: Ways | None = None  # how cards of its node get into containers; None: unknown

    @property
    def tone(self) -> Tone:
        return _HEALTH_TONES[self.card.health]

    @property
    def is_full(self) -> bool:
        """Not even one unit of its memory is free."""
        free = self.reading.memory_free_mib if self.reading is not None else None
        return free is not None and free < self.card.unit_mib


def _reading(
    title: str,
    value: Callable[[CardReading], int | None],
    unit: str,
    rank: int = 0,
    *,
    marks_full: bool = False,
) -> Column[CardRow]:
    """`rank` 0: with -o wide only."""

    def known(row: CardRow) -> int | None:
        return value(row.reading) if row.reading is not None else None

    def text(row: CardRow) -> str:
        found = known(row)
        return UNKNOWN if found is None else f"{found}{unit}"

    def tone(row: CardRow) -> Tone:
        if known(row) is None:
            return Tone.FAINT
        return Tone.CAUTION if marks_full and row.is_full else Tone.PLAIN

    return Column(title, text, tone=tone, rank=rank, wide=not rank)


def _watts(milliwatts: int | None) -> int | None:
    return None if milliwatts is None else round(milliwatts / 1000)


# A terminal of 80 columns shows what is in use rather than what the card is.
CARD_COLUMNS: Sequence[Column[CardRow]] = (
    Column("NODE", lambda row: row.node, shorten=Shorten.MIDDLE, readable=40),
    Column("CARD", lambda row: str(row.card.index)),
    Column("MODEL", lambda row: row.card.model, shorten=Shorten.END, least=20, rank=7),
    Column("MEMORY", lambda row: f"{row.card.memory_mib}MiB", rank=6),
    _reading("USED", lambda card: card.memory_used_mib, "MiB", rank=1, marks_full=True),
    _reading("FREE", lambda card: card.memory_free_mib, "MiB", rank=3, marks_full=True),
    _reading("UTIL", lambda card: card.sm_percent, "%", rank=2),
    _reading("TEMP", lambda card: card.temperature_c, "C", rank=4),
    _reading("POWER", lambda card: _watts(card.power_mw), "W", rank=5),
    Column("HEALTH", lambda row: str(row.card.health), tone=lambda row: row.tone),
    Column("UUID", lambda row: row.card.uuid, shorten=Shorten.PREFIX, least=13, rank=8),
    Column(
        "REASON",
        lambda row: row.card.reason,
        shorten=Shorten.END,
        least=20,
        readable=20,
        optional=True,
        tone=lambda row: row.tone,
    ),
    _reading("MEM-UTIL", lambda card: card.memory_percent, "%"),
    _reading("POWER-LIMIT", lambda card: _watts(card.power_limit_mw), "W"),
    _reading("SM-CLOCK", lambda card: card.sm_clock_mhz, "MHz"),
    Column("NUMA", lambda row: "" if row.card.numa < 0 else str(row.card.numa), wide=True),
    Column("ISOLATION", lambda row: row.wall or "", wide=True),
    Column("WAY", lambda row: row.ways.words if row.ways is not None else "", wide=True),
    Column("OUTSIDE", lambda row: f"{row.card.outside_mib}MiB", wide=True),
    Column("USED-BY", lambda row: _used_by(row.reading), wide=True),
)


def _used_by(reading: CardReading | None) -> str:
    if reading is None or reading.containers is None:
        return UNKNOWN
    return ",".join(map(_use_words, reading.containers))


def _use_words(use: ContainerUse) -> str:
    name = "/".join(filter(None, (use.namespace, use.pod, use.container)))
    return f"{name}={UNKNOWN if use.memory_used_mib is None else f'{use.memory_used_mib}MiB'}"


def cards_table(rows: Sequence[CardRow], empty: str = "") -> Table[CardRow]:
    return Table("Card", CARD_COLUMNS, rows, _card_fields, empty=empty)


def _card_fields(row: CardRow) -> Document:
    card = row.card
    return {
        "node": row.node,
        "index": card.index,
        "uuid": card.uuid,
        "model": card.model,
        "memoryMiB": card.memory_mib,
        "units": card.units,
        "unitMiB": card.unit_mib,
        "health": str(card.health),
        "reason": card.reason,
        "numaNode": card.numa if card.numa >= 0 else None,
        "outsideMiB": card.outside_mib,
        "isolation": row.wall and str(row.wall),
        **_way_fields(row.ways),
        **_reading_fields(row.reading or CardReading(card.uuid)),
    }


def _way_fields(ways: Ways | None) -> Document:
    """What is unknown is null, or an empty list."""
    ways = ways or Ways()
    return {
        "way": str(ways.chosen) if ways.chosen is not None else None,
        "knownWays": list(map(str, ways.known)),
        "wayProblem": ways.problem or None,
        "wayPinned": ways.is_pinned,
        "runtimeClass": ways.runtime_class or None,
        "checksStarts": ways.checks_starts,
    }


def _reading_fields(reading: CardReading) -> Document:
    """What is unknown is null."""
    watts, most_watts = reading.power_mw, reading.power_limit_mw
    used_by = reading.containers
    return {
        "memoryUsedMiB": reading.memory_used_mib,
        "memoryFreeMiB": reading.memory_free_mib,
        "smPercent": reading.sm_percent,
        "memoryPercent": reading.memory_percent,
        "temperatureCelsius": reading.temperature_c,
        "powerWatts": None if watts is None else watts / 1000,
        "powerLimitWatts": None if most_watts is None else most_watts / 1000,
        "smClockMHz": reading.sm_clock_mhz,
        "usedBy": None if used_by is None else [_use_fields(use) for use in used_by],
    }


def _use_fields(use: ContainerUse) -> Document:
    return {
        "namespace": use.namespace,
        "pod": use.pod,
        "container": use.container or None,
        "memoryUsedMiB": use.memory_used_mib,
        "memoryPeakMiB": use.memory_peak_mib,
        "memoryRequestMiB": use.memory_request_mib,
        "memoryLimitMiB": use.memory_limit_mib,
        "isolation": use.isolation and str(use.isolation),
        "smPercent": use.sm_percent,
        "idleSeconds": None if use.idle_s is None else round(use.idle_s),
        "powerWatts": None if use.power_mw is None else use.power_mw / 1000,
        "watchedSinceSeconds": use.watched_since_s,
    }


@dataclass(frozen=True, slots=True)
class ShareRow:
    """What a container of a pod holds of one card."""

    namespace: str
    pod: str
    status: str
    node: str
    container: str = ""
    gpus: ContainerGpus | None = None
    share: CardShare | None = None
    unread_cards: tuple[int, ...] = ()  # those that it may hold
    unread_why: str = ""  # why nobody knows what it holds
    wall: Wall | None = None  # None: it has whole cards

    @property
    def cards(self) -> str:
        indexes = self.unread_cards if self.share is None else (self.share.index,)
        return ",".join(map(str, indexes))

    @property
    def memory(self) -> str:
        return f"{self.share.memory_mib}MiB" if self.share else ""

    @property
    def of_card(self) -> str:
        return f"{self.share.units} of {self.share.card_units} GiB" if self.share else ""

    @property
    def compute(self) -> str:
        return f"{self.share.percent}%" if self.share and self.share.percent else ""

    @property
    def isolation(self) -> str:
        return f"unknown: {self.unread_why}" if self.gpus is None else isolation_words(self.wall)

    @property
    def isolation_tone(self) -> Tone:
        return Tone.BAD if self.gpus is None else Tone.PLAIN


def shares_table(
    pods: Iterable[Obj],
    *,
    with_namespace: bool,
    empty: str = "",
    inventories: Mapping[str, Inventory] | None = None,
) -> Table[ShareRow]:
    """One row for each card that a container has. `inventories`: by node, as far as known."""
    rows = [row for pod in pods for row in _pod_rows(pod, inventories or {})]
    return Table("CardShare", _share_columns(with_namespace), rows, _share_fields, empty=empty)


def _share_columns(with_namespace: bool) -> Sequence[Column[ShareRow]]:
    def name(row: ShareRow) -> str:
        return f"{row.namespace}/{row.pod}" if with_namespace else row.pod

    return (
        Column("POD", name, shorten=Shorten.MIDDLE, least=14),
        Column("CONTAINER", lambda row: row.container, shorten=Shorten.MIDDLE, least=9, rank=3),
        Column(
            "STATUS",
            lambda row: row.status,
            tone=lambda row: _STATUS_TONES.get(row.status, Tone.PLAIN),
        ),
        Column("NODE", lambda row: row.node, shorten=Shorten.MIDDLE, least=14),
        Column("CARD", lambda row: row.cards),
        Column("MEMORY", lambda row: row.memory),
        Column("SHARE", lambda row: row.of_card, rank=2),
        Column("COMPUTE", lambda row: row.compute, optional=True),
        Column(
            "ISOLATION",
            lambda row: row.isolation,
            shorten=Shorten.END,
            least=10,
            tone=lambda row: row.isolation_tone,
        ),
        Column("UUID", lambda row: row.share.uuid if row.share else "", wide=True),
    )


def isolation_field(wall: Wall | None) -> str:
    """Of every document that has it (docs/output.md)."""
    return "whole" if wall is None else str(wall)


def _share_fields(row: ShareRow) -> Document:
    share = row.share
    return {
        "namespace": row.namespace,
        "pod": row.pod,
        "status": row.status,
        "node": row.node,
        "container": row.container or None,
        "card": share.index if share else None,
        "uuid": share.uuid if share else None,
        "memoryMiB": share.memory_mib if share else None,
        "units": share.units if share else None,
        "cardUnits": share.card_units if share else None,
        "computePercent": (share.percent or None) if share else None,
        "isolation": isolation_field(row.wall) if row.gpus else "unknown",
        "possibleCards": list(row.unread_cards),
        "reason": row.unread_why,
    }


def _pod_rows(pod: Obj, inventories: Mapping[str, Inventory]) -> Iterator[ShareRow]:
    metadata, node = pod["metadata"], pod["spec"].get("nodeName", "")
    if not node:
        return
    allocation = held_allocation(pod, gpu_asks(pod).asks)
    phase = (pod.get("status") or {}).get("phase", "")
    status = "Terminating" if "deletionTimestamp" in metadata else phase
    of_pod = (metadata["namespace"], metadata["name"], status, node)
    if allocation.unread is not None and phase not in ("Succeeded", "Failed"):
        cards = tuple(sorted(allocation.unread.indexes))
        yield ShareRow(*of_pod, unread_cards=cards, unread_why=allocation.unread.why)
    known = inventories.get(node, Inventory())
    for gpus in allocation.containers:
        wall = known.wall_of(metadata.get("uid", ""), gpus)
        for share in gpus.shares:
            yield ShareRow(*of_pod, gpus.container, gpus, share, wall=wall)
