"""Rows of `gpupool top`: what nodes, cards and pods do now, and how they are sorted. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from gpupool.cli.output.table import Column, Document, Shorten, Table, Tone
from gpupool.core.gpu import Card
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.facts import Held

NODES, CARDS, PODS = "nodes", "cards", "pods"
VIEWS = (NODES, CARDS, PODS)
_BAR = 10


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
    found: defaultdict[str, float] = defaultdict(float)
    for each in held:
        for share in each.shares:
            found[share.uuid] += share.units / max(share.card_units, 1)
    return found


def _cards(now: Now) -> list[Row]:
    given, rows = _given(now.held), []
    for node, facts in now.nodes.items():
        for card in facts.cards:
            read = now.readings.get(card.uuid)
            rows.append(
                Row(
                    card.uuid,
                    "",
                    f"{node}/{card.index}",
                    node,
                    card.model,
                    card.index,
                    1,
                    given.get(card.uuid, 0.0),
                    None if read is None else read.sm_percent,
                    None if read is None else read.memory_used_mib,
                    card.memory_mib,
                    None,
                    _watts(read.power_mw) if read is not None else None,
                    str(card.health),
                )
            )
    return rows


def _nodes(now: Now) -> list[Row]:
    by_node: defaultdict[str, list[Row]] = defaultdict(list)
    for row in _cards(now):
        by_node[row.node].append(row)
    rows = []
    for node, cards in by_node.items():
        known = [row.percent for row in cards if row.percent is not None]
        used = [row.used_mib for row in cards if row.used_mib is not None]
        watts = [row.watts for row in cards if row.watts is not None]
        sick = sorted({row.state for row in cards if row.state != "healthy"})
        rows.append(
            Row(
                node,
                "",
                node,
                node,
                now.nodes[node].pool,
                None,
                len(cards),
                sum(row.given for row in cards),
                sum(known) / len(known) if known else None,
                sum(used) if used else None,
                sum(row.total_mib for row in cards),
                None,
                sum(watts) if watts else None,
                ",".join(sick) or "healthy",
            )
        )
    return rows


def _pods(now: Now) -> list[Row]:
    uses: dict[tuple[str, str, str], ContainerUse] = {}
    for uuid, card in now.readings.items():
        for use in card.containers or ():
            uses[use.namespace, use.pod, uuid] = use
    return [_pod(held, uses) for held in now.held]


def _pod(held: Held, uses: Mapping[tuple[str, str, str], ContainerUse]) -> Row:
    given, total = 0.0, 0
    percents: list[int] = []
    used = idle = watts = None
    for share in held.shares:
        given += share.units / max(share.card_units, 1)
        total += share.memory_mib
        use = uses.get((held.namespace, held.pod, share.uuid))
        if use is None:
            continue
        if use.sm_percent is not None:
            percents.append(use.sm_percent)
        if use.memory_used_mib is not None:
            used = (used or 0) + use.memory_used_mib
        if use.power_mw is not None:
            watts = (watts or 0.0) + use.power_mw / 1000
        if use.idle_s is not None:
            idle = use.idle_s if idle is None else min(idle, use.idle_s)
    return Row(
        f"{held.namespace}/{held.pod}/{held.container}",
        held.namespace,
        held.pod,
        held.node,
        held.workload,
        None,
        len(held.shares),
        given,
        sum(percents) / len(percents) if percents else None,
        used,
        total,
        idle,
        watts,
        held.user,
    )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


Sort: TypeAlias = Callable[[Row], tuple[float, str]]


def _known(value: Callable[[Row], float | None]) -> Sort:
    """The greatest first, and what is unknown last."""

    def key(row: Row) -> tuple[float, str]:
        found = value(row)
        return (1.0 if found is None else -found, row.name)

    return key


SORTS: Mapping[str, Sort] = {
    "util": _known(lambda row: row.percent),
    "memory": _known(lambda row: row.used_mib),
    "given": _known(lambda row: row.given),
    "idle": _known(lambda row: row.idle_s),
    "power": _known(lambda row: row.watts),
    "name": lambda row: (0.0, row.key if not row.namespace else f"{row.namespace}/{row.name}"),
}


def chosen(rows: Iterable[Row], sort: str, text: str = "", *, backwards: bool = False) -> list[Row]:
    """Those whose names contain all words of `text`, in order."""
    words = text.lower().split()
    if words:
        rows = [row for row in rows if all(word in _searched(row) for word in words)]
    return sorted(rows, key=SORTS[sort], reverse=backwards)


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


def spark(values: Sequence[float | None], width: int = 60) -> str:
    """A line of blocks, as high as the values from 0 to 1; `·` where nobody looked."""
    shown = values[-width:]
    return "".join(
        "·" if each is None else "▁▂▃▄▅▆▇█"[min(7, int(max(0.0, each) * 8))] for each in shown
    )


def _tone(row: Row) -> Tone:
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
        return f"{bar(None)} unknown of {total}"
    part = row.used_mib / row.total_mib if row.total_mib else 0.0
    return f"{bar(part)} {row.used_mib / 1024:.1f} of {total}"


def _idle(row: Row) -> str:
    from gpupool.cli.durations import words

    return "" if row.idle_s is None else words(row.idle_s)


_COMMON: tuple[Column[Row], ...] = (
    Column("UTIL", _util, tone=_tone),
    Column("MEMORY", _memory, rank=1),
    Column(
        "POWER", lambda row: "" if row.watts is None else f"{row.watts:.0f}W", right=True, rank=3
    ),
)
COLUMNS: Mapping[str, Sequence[Column[Row]]] = {
    NODES: (
        Column("NODE", lambda row: row.name, shorten=Shorten.MIDDLE, readable=40),
        Column("POOL", lambda row: row.what, shorten=Shorten.END, rank=4),
        Column("GIVEN", lambda row: f"{row.given:.1f}/{row.cards}", right=True),
        *_COMMON,
        Column("HEALTH", lambda row: row.state, rank=2),
    ),
    CARDS: (
        Column("NODE", lambda row: row.node, shorten=Shorten.MIDDLE, readable=40),
        Column("CARD", lambda row: str(row.card), right=True),
        Column("MODEL", lambda row: row.what, shorten=Shorten.END, rank=4),
        Column("GIVEN", lambda row: f"{row.given:.0%}", right=True),
        *_COMMON,
        Column("HEALTH", lambda row: row.state, rank=2),
    ),
    PODS: (
        Column("NAMESPACE", lambda row: row.namespace, shorten=Shorten.MIDDLE, rank=3),
        Column("POD", lambda row: row.name, shorten=Shorten.MIDDLE, readable=40),
        Column("GPUS", lambda row: f"{row.given:.2g}", right=True),
        *_COMMON,
        Column("IDLE", _idle, right=True, rank=2),
        Column("USER", lambda row: row.state, optional=True, rank=4),
        Column("NODE", lambda row: row.node, wide=True),
    ),
}
_KINDS = {NODES: "NodeLoad", CARDS: "CardLoad", PODS: "PodLoad"}


def table_of(view: str, rows: Sequence[Row]) -> Table[Row]:
    empty = f"No {'pod has a card' if view == PODS else 'node has cards'}."
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
