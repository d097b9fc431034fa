"""Rows of `gpupool top`: what nodes, cards and pods do now, and how they are sorted. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from gpupool.cli.output.table import Column, Document, Shorten, Table, Tone
from gpupool.core.gpu import Card, CardHealth
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.facts import Held, use_of
from gpupool.history.samples import Sample

NODES, CARDS, PODS = "nodes", "cards", "pods"
VIEWS = (NODES, CARDS, PODS)
_BAR = 10
_READABLE = 18  # of a name: bars of use and memory fit beside it into 80 columns
_UNREAD = CardReading("")


@dataclass(frozen=True, slots=True)
class NodeCards:
    pool: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """What is known at this moment."""

    nodes: Mapping[str, NodeCards] = field(default_factory=dict)
    held: Sequence[Held] = ()  # containers with cards
    readings: Mapping[str, CardReading] = field(default_factory=dict)  # by uuid


class Row(NamedTuple):
    """One line, of any of the three views. None: unknown, or it does not apply."""

    key: str  # name that stays the same from one moment to the next
    namespace: str
    name: str
    node: str
    what: str  # pool of a node, model of a card, workload of a pod
    card: int | None  # the index of a card
    cards: int
    given: float  # cards, or parts of them
    percent: float | None  # of compute, of all its cards
    used_mib: int | None
    total_mib: int  # of the card, or of the share
    idle_s: float | None
    watts: float | None
    state: str  # health, or the user of a pod


def rows_of(now: Now, view: str) -> list[Row]:
    return {NODES: _nodes, CARDS: _cards, PODS: _pods}[view](now)


def _given(held: Iterable[Held]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in held:
        for share in each.shares:
            part = share.units / (share.card_units or 1)
            found[share.uuid] = found.get(share.uuid, 0.0) + part
    return found


def _cards(now: Now) -> list[Row]:
    # A large cluster has 40,000 cards, every second: nothing is looked up or made twice here.
    given, readings, rows = _given(now.held), now.readings, []
    for node, facts in now.nodes.items():
        for card in facts.cards:
            uuid, index = card.uuid, card.index
            read = readings.get(uuid, _UNREAD)
            watts = None if read.power_mw is None else read.power_mw / 1000
            part, percent, used = given.get(uuid, 0.0), read.sm_percent, read.memory_used_mib
            facts_of_card = (node, card.model, index, 1, part, percent, used, card.memory_mib)
            name = f"{node}/{index}"
            rows.append(Row(uuid, "", name, *facts_of_card, None, watts, card.health))
    return rows


def _nodes(now: Now) -> list[Row]:
    given = _given(now.held)
    return [_node(name, facts, given, now.readings) for name, facts in now.nodes.items()]


def _node(
    name: str, facts: NodeCards, given: Mapping[str, float], readings: Mapping[str, CardReading]
) -> Row:
    cards = facts.cards
    read = [found for card in cards if (found := readings.get(card.uuid)) is not None]
    known = [each.sm_percent for each in read if each.sm_percent is not None]
    used = [each.memory_used_mib for each in read if each.memory_used_mib is not None]
    power = [each.power_mw for each in read if each.power_mw is not None]
    sick = {card.health for card in cards if card.health is not CardHealth.HEALTHY}
    return Row(
        name,
        "",
        name,
        name,
        facts.pool,
        None,
        len(cards),
        sum([given.get(card.uuid, 0.0) for card in cards]),
        sum(known) / len(known) if known else None,
        sum(used) if used else None,
        sum([card.memory_mib for card in cards]),
        None,
        sum(power) / 1000 if power else None,
        ",".join(sorted(sick)) or "healthy",
    )


def _pods(now: Now) -> list[Row]:
    return [_pod(held, now.readings) for held in now.held]


def _pod(held: Held, readings: Mapping[str, CardReading]) -> Row:
    given, total, told = 0.0, 0, []
    for share in held.shares:
        given += share.units / (share.card_units or 1)
        total += share.memory_mib
        if (use := use_of(readings.get(share.uuid), held)) is not None:
            told.append(use)
    namespace, pod = held.namespace, held.pod
    percent, used, idle_s, watts = _used(told)
    name = f"{namespace}/{pod}/{held.container}"
    facts = (held.node, held.workload, None, len(held.shares), given)
    return Row(name, namespace, pod, *facts, percent, used, total, idle_s, watts, held.user)


def _used(
    told: Sequence[ContainerUse],
) -> tuple[float | None, int | None, float | None, float | None]:
    """Percent of compute, MiB, seconds without work, and watts, on all cards together."""
    if len(told) == 1:  # nearly all pods have one card
        use = told[0]
        watts = None if use.power_mw is None else use.power_mw / 1000
        return use.sm_percent, use.memory_used_mib, use.idle_s, watts
    percents = [use.sm_percent for use in told if use.sm_percent is not None]
    used = [use.memory_used_mib for use in told if use.memory_used_mib is not None]
    power = [use.power_mw for use in told if use.power_mw is not None]
    idle_s = min((use.idle_s for use in told if use.idle_s is not None), default=None)
    return (
        sum(percents) / len(percents) if percents else None,
        sum(used) if used else None,
        idle_s,
        sum(power) / 1000 if power else None,
    )


# By which field of a row; what is unknown comes last. The rows of one value are in order of names.
SORTS: Mapping[str, str] = {
    "util": "percent",
    "memory": "used_mib",
    "given": "given",
    "idle": "idle_s",
    "power": "watts",
    "name": "",
}


def _sorted(rows: Iterable[Row], sort: str) -> list[Row]:
    """Names ascend, and figures descend."""
    if not SORTS[sort]:
        return sorted(rows, key=lambda row: f"{row.namespace}/{row.name}" if row[1] else row.key)
    # Python keeps the order of equal ones, and needs no function of ours for a field of a tuple.
    names = sorted(rows, key=itemgetter(Row._fields.index("name")))
    at = Row._fields.index(SORTS[sort])
    known = sorted((row for row in names if row[at] is not None), key=itemgetter(at), reverse=True)
    return known + [row for row in names if row[at] is None]


def chosen(rows: Iterable[Row], sort: str, text: str = "", *, backwards: bool = False) -> list[Row]:
    """Those whose names contain all words of `text`, in order."""
    words = text.lower().split()
    if words:
        rows = [row for row in rows if all(word in _searched(row) for word in words)]
    found = _sorted(rows, sort)
    return found[::-1] if backwards else found


def _searched(row: Row) -> str:
    parts = (row.namespace, row.name, row.node, row.what, row.state)
    return "/".join(parts).lower()


def bar(part: float | None, width: int = _BAR) -> str:
    """A bar of eighths of a character; empty if unknown."""
    if part is None:
        return "·" * width
    eighths = round(max(0.0, min(1.0, part)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "░")[:width]


def busy(sample: Sample, cards: int) -> float | None:
    """Of all time on `cards` cards, that in which kernels ran: what the bar shows of now."""
    if not sample.told:
        return None
    if sample.have:  # a card or a node tells of itself
        return sample.used / sample.told
    known_ms = sample.seen * max(cards, 1) * sample.told / max(sample.given, 1)
    return sample.used / known_ms if known_ms else None


def spark(values: Sequence[float | None], width: int = 60) -> str:
    """A line of blocks, as high as the values from 0 to 1; `·` where nobody looked."""
    shown = values[-width:]
    return "".join(
        "·" if each is None else "▁▂▃▄▅▆▇█"[min(7, int(max(0.0, each) * 8))] for each in shown
    )


def tone_of(row: Row) -> Tone:
    if row.percent is None:
        return Tone.FAINT
    return Tone.CAUTION if row.percent < 1 and row.given else Tone.PLAIN


def _util(row: Row) -> str:
    if row.percent is None:
        return f"{bar(None)} unknown"
    return f"{bar(row.percent / 100)} {row.percent:3.0f}%"


def _memory(row: Row) -> str:
    total = f"{row.total_mib / 1024:.1f}GiB"
    if row.used_mib is None:
        return f"{bar(None)} unknown"
    part = row.used_mib / row.total_mib if row.total_mib else 0.0
    return f"{bar(part)} {row.used_mib / 1024:.1f} of {total}"


def _idle(row: Row) -> str:
    from gpupool.cli.durations import words

    return "" if row.idle_s is None else words(row.idle_s)


_COMMON: tuple[Column[Row], ...] = (
    Column("UTIL", _util, tone=tone_of),
    Column("MEMORY", _memory, rank=1),
    Column(
        "POWER", lambda row: "" if row.watts is None else f"{row.watts:.0f}W", right=True, rank=3
    ),
)
COLUMNS: Mapping[str, Sequence[Column[Row]]] = {
    NODES: (
        Column("NODE", lambda row: row.name, shorten=Shorten.MIDDLE, readable=_READABLE),
        Column("POOL", lambda row: row.what, shorten=Shorten.END, rank=4),
        Column("GIVEN", lambda row: f"{row.given:.1f}/{row.cards}", right=True),
        *_COMMON,
        Column("HEALTH", lambda row: row.state, rank=2),
    ),
    CARDS: (
        Column("NODE", lambda row: row.node, shorten=Shorten.MIDDLE, readable=_READABLE),
        Column("CARD", lambda row: str(row.card), right=True),
        Column("MODEL", lambda row: row.what, shorten=Shorten.END, rank=4),
        Column("GIVEN", lambda row: f"{row.given:.0%}", right=True),
        *_COMMON,
        Column("HEALTH", lambda row: row.state, rank=2),
    ),
    PODS: (
        Column("NAMESPACE", lambda row: row.namespace, shorten=Shorten.MIDDLE, rank=3),
        Column("POD", lambda row: row.name, shorten=Shorten.MIDDLE, readable=_READABLE),
        Column("GPUS", lambda row: f"{row.given:.2g}", right=True),
        *_COMMON,
        Column("IDLE", _idle, right=True, rank=2),
        Column("USER", lambda row: row.state, optional=True, rank=4),
        Column("NODE", lambda row: row.node, wide=True),
    ),
}
_KINDS = {NODES: "NodeLoad", CARDS: "CardLoad", PODS: "PodLoad"}


_FILTERED = {NODES: "node with cards", CARDS: "card", PODS: "pod with a card"}


def table_of(view: str, rows: Sequence[Row], text: str = "") -> Table[Row]:
    """`text`: the filter that chose the rows."""
    empty = f"No {'pod has a card' if view == PODS else 'node has cards'}."
    if text:
        empty = f'No {_FILTERED[view]} has "{text}" in its line.'
    return Table(_KINDS[view], COLUMNS[view], rows, lambda row: fields_of(view, row), empty=empty)


def fields_of(view: str, row: Row) -> Document:
    common: Document = {
        "node": row.node,
        "cards": row.cards,
        "givenGpus": round(row.given, 4),
        "smPercent": None if row.percent is None else round(row.percent, 1),
        "memoryUsedMiB": row.used_mib,
        "memoryMiB": row.total_mib,
        "powerWatts": None if row.watts is None else round(row.watts, 1),
    }
    if view == PODS:
        names = {"namespace": row.namespace, "pod": row.name, "container": row.key.split("/")[2]}
        rest = {"workload": row.what, "user": row.state or None, "idleSeconds": row.idle_s}
        return {**names, **common, **rest}
    if view == CARDS:
        card = {"index": row.card, "uuid": row.key, "model": row.what, "health": row.state}
        return {**common, **card}
    return {**common, "pool": row.what or None, "health": row.state}
