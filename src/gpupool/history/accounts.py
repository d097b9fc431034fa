"""Two moments -> what every series did between them. Pure.

What the API told at the second moment counts for the whole time between: from when a pod got its
cards, until it ended. A pod that vanished in between counts for half of it, as nobody knows when.
What agents told counts for the same time. An agent that did not answer leaves it unknown.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.facts import Held, Moment
from gpupool.history.samples import Sample, together
from gpupool.history.series import Info, Key, Kind
from gpupool.history.store import Entry

CLUSTER = Key(Kind.CLUSTER, "")
NO_USER = "unknown"  # nobody is named as the one who made the pod
NO_POOL = "none"

_Parts: TypeAlias = defaultdict[Key, list[Sample]]


def entries(before: Moment, after: Moment) -> dict[Key, Entry]:
    """Empty if no time has passed."""
    length = after.at_ms - before.at_ms
    if length <= 0:
        return {}
    parts: _Parts = defaultdict(list)
    found = dict(_containers(before, after, parts))
    for name, node in after.nodes.items():
        whole = []
        for uuid in node.cards:
            key = Key(Kind.CARD, uuid)
            card = together([*parts.pop(key, ()), _of_card(uuid, length, before, after)])
            whole.append(card)
            found[key] = Entry(card._replace(seen=length), None, {"node": name})
        for key in (CLUSTER, Key(Kind.POOL, node.pool or NO_POOL), Key(Kind.NODE, name)):
            parts[key] += whole
    for key, samples in parts.items():
        if key.kind is not Kind.CARD:  # those of nodes that are gone
            found[key] = Entry(together(samples)._replace(seen=length))
    return found


def _containers(before: Moment, after: Moment, parts: _Parts) -> dict[Key, Entry]:
    """The entries of containers. `parts` gets what they add to others."""
    found: dict[Key, Entry] = {}
    for held, span in _spans(before, after):
        sample, active_s, by_card = _of_container(held, span, before, after)
        key = Key(Kind.CONTAINER, f"{held.namespace}/{held.pod}/{held.container}")
        found[key] = _joined(found.get(key), Entry(sample, active_s, _info(held)))
        parts[Key(Kind.WORKLOAD, f"{held.namespace}/{held.workload}")].append(sample)
        parts[Key(Kind.NAMESPACE, held.namespace)].append(sample)
        parts[Key(Kind.USER, held.user or NO_USER)].append(sample)
        # What a pod has and uses is counted with its cards; what it asks for, here.
        asked = Sample(asked=sample.asked)
        parts[CLUSTER].append(asked)
        node = after.nodes.get(held.node) or before.nodes.get(held.node)
        if node is not None:
            parts[Key(Kind.POOL, node.pool or NO_POOL)].append(asked)
            parts[Key(Kind.NODE, held.node)].append(asked)
        for uuid, given in by_card.items():
            parts[Key(Kind.CARD, uuid)].append(given)
    return found


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
    held: Held, span: int, before: Moment, after: Moment
) -> tuple[Sample, int | None, dict[str, Sample]]:
    """Its sample, when it last used a card, and what it holds of each card."""
    samples: list[Sample] = []
    by_card: dict[str, Sample] = {}
    active: list[int] = []
    stays = (held.uid, held.container) in after.held
    for share in held.shares:
        given = span * share.units // max(share.card_units, 1)
        sample = Sample(given=given, memory_given=share.memory_mib * span // 1000)
        use = _use(after.cards.get(share.uuid), held) if stays else None
        idle = 0
        if use is not None and use.sm_percent is not None:
            is_idle = not use.sm_percent and (use.idle_s is None or use.idle_s * 1000 >= span)
            idle = given if is_idle else 0
            sample = sample._replace(
                told=given,
                used=span * use.sm_percent // 100,
                idle=idle,
                memory_used=(use.memory_used_mib or 0) * span // 1000,
                energy=(use.power_mw or 0) * span // 1_000_000,
                peak=_peak(use, _use(before.cards.get(share.uuid), held)),
            )
            active += _last_activity(use, after.read_at_s.get(held.node))
        samples.append(sample)
        by_card[share.uuid] = Sample(given=given, memory_given=sample.memory_given, idle=idle)
    asked = _asked(held, span, after)
    total = together(samples)._replace(seen=span, asked=asked)
    return total, max(active, default=None), by_card


def _asked(held: Held, span: int, after: Moment) -> int:
    """Units of a pod that waits: as parts of an average card of the cluster."""
    if not held.asked_units:
        return span * held.asked_cards
    of_card = held.shares[0].card_units if held.shares else 0
    if not of_card:
        cards = sum(len(node.cards) for node in after.nodes.values())
        of_card = sum(node.units for node in after.nodes.values()) // cards if cards else 0
    return span * held.asked_units // of_card if of_card else 0


def _use(card: CardReading | None, held: Held) -> ContainerUse | None:
    for use in (card.containers or ()) if card is not None else ():
        is_pod = use.uid == held.uid if use.uid else use.namespace == held.namespace
        if is_pod and use.pod == held.pod and use.container in (held.container, ""):
            return use
    return None


def _peak(use: ContainerUse, old: ContainerUse | None) -> int:
    """The agent's own peak covers the time between two readings, but also all time before."""
    now = use.memory_used_mib or 0
    peak = use.memory_peak_mib
    if peak is None or (old is not None and old.memory_peak_mib == peak):
        return now
    return max(peak, now)


def _last_activity(use: ContainerUse, read_at_s: float | None) -> list[int]:
    """If the agent has seen none, its idle time is only that since it watches."""
    if use.idle_s is None or read_at_s is None:
        return []
    at_s = read_at_s - use.idle_s
    if use.watched_since_s is not None and at_s <= use.watched_since_s + 1:
        return []
    return [int(at_s)]


def _of_card(uuid: str, length: int, before: Moment, after: Moment) -> Sample:
    card = after.cards.get(uuid)
    sample = Sample(have=length)
    percent = None if card is None else _percent(card)
    if card is None or percent is None:
        return sample
    used_mib = card.memory_used_mib or 0
    return sample._replace(
        told=length,
        used=length * percent // 100,
        memory_used=used_mib * length // 1000,
        energy=_energy(card, before.cards.get(uuid), length),
        peak=used_mib,
    )


def _percent(card: CardReading) -> int | None:
    """Containers tell of the time since the last sample, cards only of the last moments."""
    told = [use.sm_percent for use in card.containers or () if use.sm_percent is not None]
    return min(100, sum(told)) if told else card.sm_percent


def _energy(card: CardReading, old: CardReading | None, length: int) -> int:
    now = card.energy_mj
    then = None if old is None else old.energy_mj
    if now is not None and then is not None and now >= then:
        return (now - then) // 1000
    return (card.power_mw or 0) * length // 1_000_000


def _info(held: Held) -> Info:
    return {
        "node": held.node,
        "workload": held.workload,
        "user": held.user,
        "uid": held.uid,
        "cards": len(held.shares) or held.asked_cards,
        "units": held.asked_units,
        "memoryMiB": sum(share.memory_mib for share in held.shares),
        "cardUnits": held.shares[0].card_units if held.shares else 0,
        # Of one unit, on this card.
        "unitMiB": held.shares[0].memory_mib // max(held.shares[0].units, 1) if held.shares else 0,
    }


def _joined(old: Entry | None, new: Entry) -> Entry:
    """Two pods of one name in one stretch: one of a StatefulSet was replaced."""
    if old is None:
        return new
    active_s = max(filter(None, (old.active_s, new.active_s)), default=None)
    return Entry(together([old.sample, new.sample]), active_s, new.info)
