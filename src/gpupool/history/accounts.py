"""Two moments -> what every series did between them. Pure.

What the API told at the second moment counts for the whole time between: from when a pod got its
cards, until it ended. A pod that vanished in between counts for half of it, as nobody knows when.
What agents told counts for the same time. An agent that did not answer leaves it unknown.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from gpupool.core.gpu import CardShare
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.facts import Held, Moment, Uses
from gpupool.history.samples import Sample, together
from gpupool.history.series import Info, Key, Kind
from gpupool.history.store import Entry

CLUSTER = Key(Kind.CLUSTER, "")
NO_USER = "unknown"  # nobody is named as the one who made the pod
NO_POOL = "none"

_MOST_WATTS = 10_000  # of one card: what is more is a broken sensor, or a lie

_Parts: TypeAlias = defaultdict[Key, list[Sample]]
# What containers hold of a card, by its uuid.
_Cards: TypeAlias = defaultdict[str, list[Sample]]


def entries(before: Moment, after: Moment) -> dict[Key, Entry]:
    """Empty if no time has passed."""
    length = after.at_ms - before.at_ms
    if length <= 0:
        return {}
    parts: _Parts = defaultdict(list)
    cards: _Cards = defaultdict(list)
    found = _containers(before, after, parts, cards)
    for name, node in after.nodes.items():
        info = {"node": name}
        whole = [_of_card(uuid, length, before, after) for uuid in node.cards]
        for uuid, card in zip(node.cards, whole, strict=True):
            found[Key(Kind.CARD, uuid)] = Entry(_with_held(card, cards.get(uuid, ())), None, info)
        both = together(whole)
        for key in (CLUSTER, Key(Kind.POOL, node.pool or NO_POOL), Key(Kind.NODE, name)):
            parts[key].append(both)
    for key, samples in parts.items():
        found[key] = Entry(together(samples)._replace(seen=length))
    return found


class _Looks(NamedTuple):
    before: Moment
    after: Moment
    used_before: Uses
    used_after: Uses


def _containers(before: Moment, after: Moment, parts: _Parts, cards: _Cards) -> dict[Key, Entry]:
    """The entries of containers. `parts` and `cards` get what they add to others."""
    found: dict[Key, Entry] = {}
    by_node: defaultdict[str, list[Sample]] = defaultdict(list)
    groups: defaultdict[tuple[str, str, str], list[Sample]] = defaultdict(list)
    average = _average_units(after)
    looks = _Looks(before, after, Uses(before.cards), Uses(after.cards))
    for held, span in _spans(before, after):
        asks = _asked(held, span, average)
        sample, active_s = _of_container(held, (span, asks), looks, cards)
        key = Key(Kind.CONTAINER, f"{held.namespace}/{held.pod}/{held.container}")
        entry = Entry(sample, active_s, _info(held))
        found[key] = _joined(found[key], entry) if key in found else entry
        groups[held.namespace, held.workload, held.user].append(sample)
        by_node[held.node].append(sample)
    for (namespace, workload, user), samples in groups.items():
        both = together(samples)
        parts[Key(Kind.WORKLOAD, f"{namespace}/{workload}")].append(both)
        parts[Key(Kind.NAMESPACE, namespace)].append(both)
        parts[Key(Kind.USER, user or NO_USER)].append(both)
    for name, samples in by_node.items():
        both = _held_only(together(samples))
        for key in _places(name, before, after):
            parts[key].append(both)
    return found


def _places(name: str, before: Moment, after: Moment) -> list[Key]:
    """Where what a pod of this node holds is counted. A pod that waits has none."""
    node = after.nodes.get(name) or before.nodes.get(name)
    if not name:
        return [CLUSTER]
    if node is None:  # nobody has heard of it, or its agent has taken its cards back
        return [CLUSTER, Key(Kind.POOL, NO_POOL)]
    return [CLUSTER, Key(Kind.POOL, node.pool or NO_POOL), Key(Kind.NODE, name)]


def _held_only(pods: Sample) -> Sample:
    """Of what pods did, that which their cards do not tell themselves."""
    return pods._replace(seen=0, have=0, told=0, used=0, memory_used=0, energy=0, peak=0)


def _spans(before: Moment, after: Moment) -> Iterator[tuple[Held, int]]:
    """Each container, and for how many milliseconds it counts."""
    for key, held in after.held.items():
        begin = max(before.at_ms, min(held.from_ms, after.at_ms))
        if key in before.held and before.held[key].node == held.node:
            begin = before.at_ms  # clocks of machines differ: it was there
        end = after.at_ms if held.until_ms is None else min(held.until_ms, after.at_ms)
        if end > begin:
            yield held, end - begin
    for key, held in before.held.items():
        if key not in after.held and held.until_ms is None:
            yield held, (after.at_ms - before.at_ms) // 2


def _of_container(
    held: Held, counts: tuple[int, int], looks: _Looks, cards: _Cards
) -> tuple[Sample, int | None]:
    """Its sample, and when it last used a card. `counts`: for how long it counts, and what it asks
    for. `cards` gets what it holds of each."""
    span, asks = counts
    samples: list[Sample] = []
    active: int | None = None
    stays = (held.uid, held.container) in looks.after.held
    for share in held.shares:
        sample = _of_share(share, span, asks)
        use = looks.used_after.of(share.uuid, held) if stays else None
        if use is not None and use.sm_percent is not None:
            last = _last_activity(use, looks.after.read_at_s.get(held.node))
            peak = _peak(use, looks.used_before.of(share.uuid, held))
            sample = _with_use(sample, use, _told_ms(use, span, last), peak)
            active = last if active is None or (last is not None and last > active) else active
        samples.append(sample)
        cards[share.uuid].append(sample)
    if len(samples) == 1:
        return samples[0], active
    return together(samples)._replace(seen=span, asked=asks), active


def _of_share(share: CardShare, span: int, asks: int) -> Sample:
    """While nobody has told what it does. Whoever writes an allocation himself has no more than the
    card."""
    of_card = max(share.card_units, 1)
    given = span * min(share.units, of_card) // of_card
    return Sample(span, 0, asks, given, memory_given=share.memory_mib * span // 1000)


def _with_use(held: Sample, use: ContainerUse, told_ms: int, peak: int) -> Sample:
    """`told_ms`: of how much of the time the agent tells."""
    percent = use.sm_percent or 0
    known, used = held.given * told_ms // held.seen, told_ms * percent // 100
    is_idle = not percent and (use.idle_s is None or use.idle_s * 1000 >= told_ms)
    return held._replace(
        told=known,
        used=used,
        idle=known if is_idle else 0,
        memory_used=(use.memory_used_mib or 0) * told_ms // 1000,
        energy=_joules(use.power_mw, told_ms),
        known=known,
        within=min(used, known),
        peak=peak,
    )


def _average_units(moment: Moment) -> int:
    """Of a card of the cluster; 0: it has none."""
    cards = sum(len(node.cards) for node in moment.nodes.values())
    return sum(node.units for node in moment.nodes.values()) // cards if cards else 0


def _asked(held: Held, span: int, average: int) -> int:
    """Units of a pod that waits: as parts of an average card of the cluster."""
    if not held.asked_units:
        return span * held.asked_cards
    of_card = (held.shares[0].card_units if held.shares else 0) or average
    return span * held.asked_units // of_card if of_card else 0


def _peak(use: ContainerUse, old: ContainerUse | None) -> int:
    """The agent's own peak covers the time between two readings, but also all time before."""
    now, peak = use.memory_used_mib or 0, use.memory_peak_mib
    if peak is None or peak <= now:
        return now
    return now if old is not None and old.memory_peak_mib == peak else peak


def _told_ms(use: ContainerUse, span: int, last: int | None) -> int:
    """Of how much of a stretch an agent tells. One that has just begun to watch, and has seen no
    kernel, knows nothing of the time before."""
    if use.sm_percent or use.idle_s is None or last is not None:
        return span
    return min(span, int(use.idle_s * 1000))


def _last_activity(use: ContainerUse, read_at_s: float | None) -> int | None:
    """If the agent has seen none, its idle time is only that since it watches."""
    if use.idle_s is None or read_at_s is None:
        return None
    at_s = read_at_s - use.idle_s
    if use.watched_since_s is not None and at_s <= use.watched_since_s + 1:
        return None
    return int(at_s)


def _of_card(uuid: str, length: int, before: Moment, after: Moment) -> Sample:
    """What the card itself tells."""
    card = after.cards.get(uuid)
    percent = None if card is None else _percent(card)
    if card is None or percent is None:
        return Sample(length, length)
    used, used_mib = length * percent // 100, card.memory_used_mib or 0
    used_memory, energy = used_mib * length // 1000, _energy(card, before.cards.get(uuid), length)
    told = (length, used, 0, 0, used_memory, energy, 0, 0, used_mib)
    return Sample(length, length, 0, 0, *told)


def _with_held(card: Sample, held: Iterable[Sample]) -> Sample:
    given = idle = memory = known = within = 0
    for each in held:
        given, idle, memory = given + each.given, idle + each.idle, memory + each.memory_given
        known, within = known + each.known, within + each.within
    return card._replace(given=given, idle=idle, memory_given=memory, known=known, within=within)


def _percent(card: CardReading) -> int | None:
    """Containers tell of the time since the last sample, cards only of the last moments."""
    told = [use.sm_percent for use in card.containers or () if use.sm_percent is not None]
    return min(100, sum(told)) if told else card.sm_percent


def _energy(card: CardReading, old: CardReading | None, length: int) -> int:
    now = card.energy_mj
    then = None if old is None else old.energy_mj
    if now is not None and then is not None and then <= now <= then + _MOST_WATTS * length:
        return (now - then) // 1000
    return _joules(card.power_mw, length)


def _joules(power_mw: int | None, length: int) -> int:
    return min(power_mw or 0, _MOST_WATTS * 1000) * length // 1_000_000


def _info(held: Held) -> Info:
    return {
        "node": held.node,
        "workload": held.workload,
        "user": held.user,
        "uid": held.uid,
        "cards": len(held.shares) or held.asked_cards,
        "milliCards": sum([_thousandths(share) for share in held.shares]),
        "memoryMiB": sum([share.memory_mib for share in held.shares]),
    }


def _thousandths(share: CardShare) -> int:
    of_card = max(share.card_units, 1)
    return 1000 * min(share.units, of_card) // of_card


def _joined(old: Entry, new: Entry) -> Entry:
    """Two pods of one name in one stretch: one of a StatefulSet was replaced."""
    active_s = max(filter(None, (old.active_s, new.active_s)), default=None)
    return Entry(together([old.sample, new.sample]), active_s, new.info)
