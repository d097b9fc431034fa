"""The health of a node's cards: what the driver says each second goes in, an inventory comes out.

    healthy ── XID of policy "suspect" ──> suspect ── quiet for long enough ──> healthy
       │  └─── XID of policy "unhealthy" ─> unhealthy ── reset, or pardoned ──> healthy
       ├─────── uncorrected memory errors > 0 ──> unhealthy ── back to 0 ─────> healthy
       ├─────── the driver cannot read it, or hangs ──> unhealthy ── is read ─> healthy
       ├─────── fell off the bus ──> lost ── answers again ───────────────────> healthy
       └─────── a person's order ─> cordoned ── taken back ───────────────────> healthy

Pure: time comes in as an argument. Several states can hold at a time. The inventory shows one:
lost first, then cordoned, unhealthy, suspect.

Memory errors, lost cards and orders are seen again in every reading, so they need not be
remembered. The driver reports an XID only once. What it did to a card is therefore published in the
`reason` of the card in the inventory, from where the next agent restores it (`remembered`). After a
reboot of the machine (another boot id) all cards are new: they were reset.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpupool.agent.xid_policy import Effect, XidPolicy
from gpupool.core.gpu import Card, CardHealth, Inventory
from gpupool.hardware.driver import CardLook, Look

# Memory that no pod explains is published only when so many readings in a row agree, and in steps
# of this size. A program that just starts or ends, and rounding in drivers, would otherwise change
# the inventory, and with it the node object, every second. For the same reason a card is unhealthy
# only after as many readings of it have failed.
_STEADY_LOOKS = 3
_OUTSIDE_STEP_MIB = 256
# `remembered` reads the reasons that `_trouble` writes: both must keep the same form.
_XID_REASON = re.compile(r"XID (\d{1,9}): ")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What XIDs did to a card."""

    health: CardHealth
    reason: str
    until_s: float | None  # when it is over; None: only a reset or a person ends it


@dataclass(frozen=True, slots=True)
class KnownCard:
    facts: CardLook  # from the last reading in which the card answered
    is_lost: bool = False
    trouble: Trouble | None = None
    outside: tuple[int, ...] = ()  # outside_mib of the last _STEADY_LOOKS readings
    error: str = ""  # why the driver could not read it in the last reading
    errors: int = 0  # so many readings in a row; not counted beyond _STEADY_LOOKS


@dataclass(frozen=True, slots=True)
class NodeCards:
    """All that is known of a node's cards; each reading of the driver makes a new value."""

    boot: str = ""
    driver: str = ""
    cuda: int = 0
    cards: tuple[KnownCard, ...] = ()  # sorted by index
    silence: str = ""  # why there was no last reading: the driver did not answer at all


@dataclass(frozen=True, slots=True)
class Orders:
    """What people have ordered with `gpupool gpu`: uuid of the card -> reason."""

    cordoned: Mapping[str, str]
    cleared: Mapping[str, str]  # uncordoned: errors so far are forgotten


NO_ORDERS = Orders({}, {})


def remembered(inventory: Inventory, policy: XidPolicy, now_s: float) -> NodeCards:
    """Restores what the agent before this one has published."""
    cards = tuple(
        KnownCard(
            CardLook(
                card.index,
                card.uuid,
                card.model,
                card.memory_mib,
                links=card.links,
                numa=card.numa,
            ),
            is_lost=card.health is CardHealth.LOST,
            trouble=_again(card, policy, now_s),
        )
        for card in inventory.cards
    )
    return NodeCards(inventory.boot, inventory.driver, cards=cards)


def _again(card: Card, policy: XidPolicy, now_s: float) -> Trouble | None:
    # The reason does not tell the time of the XID, so a suspect card's quiet time starts again.
    found = _XID_REASON.match(card.reason)
    return _trouble(int(found[1]), policy, now_s) if found else None


def after_look(
    before: NodeCards, look: Look, orders: Orders, policy: XidPolicy, now_s: float
) -> NodeCards:
    same_boot = before.boot == look.boot
    by_uuid = {known.facts.uuid: known for known in before.cards if same_boot}
    # A card that fell off the bus may not tell its uuid. Within a boot its index identifies it.
    by_index = {known.facts.index: known for known in by_uuid.values()}
    found: dict[str, KnownCard] = {}
    for card in look.cards:
        known = by_uuid.get(card.uuid) if card.uuid else by_index.get(card.index)
        if known is None and (card.is_lost or card.error):
            continue  # it has never answered, so that there is nothing to publish of it
        seen = _seen(known, card)
        found[seen.facts.uuid] = seen
    for uuid, known in by_uuid.items():  # the driver does not list these cards any more
        # An order to clear drops such a card. Otherwise a card that was taken out of the machine
        # would stay in the inventory until the next boot.
        if uuid not in found and uuid not in orders.cleared:
            found[uuid] = _uncounted(known, {other.facts.index for other in found.values()})
    # First pardoned, then struck: an order to clear forgets what the person has seen, not the XIDs
    # that this reading brings.
    struck = {
        uuid: _struck(_pardoned(known, orders, now_s), look, policy, now_s)
        for uuid, known in found.items()
    }
    cards = sorted(struck.values(), key=lambda known: (known.facts.index, known.facts.uuid))
    return NodeCards(look.boot, look.version, look.cuda, tuple(cards))


def after_silence(before: NodeCards, why: str) -> NodeCards:
    """Of a driver that did not answer at all. Its cards are still there, with the pods on them."""
    return replace(before, silence=why)


def never_read(cards: NodeCards, look: Look) -> Iterable[CardLook]:
    """Cards that the driver counts and could not read yet: nothing can be published of them."""
    known = {card.facts.index for card in cards.cards}
    return (card for card in look.cards if card.error and card.index not in known)


def _seen(known: KnownCard | None, card: CardLook) -> KnownCard:
    if card.is_lost:
        # `after_look` skips cards that were never known.
        assert known is not None
        return replace(known, is_lost=True)
    if card.error:
        assert known is not None
        errors = min(known.errors + 1, _STEADY_LOOKS)
        return replace(known, error=card.error, errors=errors)
    if known is None:
        return KnownCard(card, outside=(card.outside_mib,))
    outside = (*known.outside, card.outside_mib)[-_STEADY_LOOKS:]
    # A lost card comes back only by a reset, and a reset clears what XIDs did.
    trouble = None if known.is_lost else known.trouble
    return KnownCard(card, trouble=trouble, outside=outside)


def _uncounted(known: KnownCard, taken: set[int]) -> KnownCard:
    """A card that the driver has stopped listing: it is lost, but stays in the inventory, so that
    pods on it and people can see what happened. The driver may have given its index to another
    card; then it gets an index behind all others."""
    index = known.facts.index
    if index in taken:
        index = max(taken) + 1
    # Links name other cards by index, and these indexes may have changed.
    return replace(known, is_lost=True, facts=replace(known.facts, index=index, links=()))


def _pardoned(known: KnownCard, orders: Orders, now_s: float) -> KnownCard:
    """Without its trouble, if the time of that is over or a person has cleared it."""
    trouble = known.trouble
    if trouble is None:
        return known
    is_over = trouble.until_s is not None and trouble.until_s <= now_s
    if is_over or known.facts.uuid in orders.cleared:
        return replace(known, trouble=None)
    return known


def _struck(known: KnownCard, look: Look, policy: XidPolicy, now_s: float) -> KnownCard:
    """With the trouble of new XIDs. An XID that names no card is taken to concern every card."""
    for xid in look.xids:
        if xid.uuid in ("", known.facts.uuid):
            trouble = _trouble(xid.number, policy, now_s)
            known = replace(known, trouble=_worse(known.trouble, trouble))
    return known


def _trouble(xid: int, policy: XidPolicy, now_s: float) -> Trouble | None:
    rule = policy.rule(xid)
    reason = f"XID {xid}: {rule.meaning}"
    match rule.effect:
        case Effect.IGNORE:
            return None
        case Effect.SUSPECT:
            return Trouble(CardHealth.SUSPECT, reason, now_s + rule.quiet_minutes * 60)
        case Effect.UNHEALTHY:
            return Trouble(CardHealth.UNHEALTHY, reason, None)


def _worse(one: Trouble | None, other: Trouble | None) -> Trouble | None:
    """The one that lasts longer; if they last equally long, the newer one (`other`)."""
    if one is None or other is None:
        return one or other
    return one if one.until_s is None and other.until_s is not None else other


def inventory_after(cards: NodeCards, orders: Orders, unit_mib: int) -> Inventory:
    published = tuple(_card(known, orders, unit_mib, cards.silence) for known in cards.cards)
    return Inventory(published, cards.driver, cards.boot)


def _card(known: KnownCard, orders: Orders, unit_mib: int, silence: str) -> Card:
    facts = known.facts
    health, reason = _health(known, orders, unit_mib, silence)
    # The minimum, because a peak in a single reading must not count.
    outside_mib = min(known.outside, default=0) // _OUTSIDE_STEP_MIB * _OUTSIDE_STEP_MIB
    return Card(
        facts.index,
        facts.uuid,
        facts.model,
        facts.memory_mib,
        health,
        reason,
        facts.links,
        facts.numa,
        outside_mib,
        unit_mib,
    )


def _health(
    known: KnownCard, orders: Orders, unit_mib: int, silence: str
) -> tuple[CardHealth, str]:
    facts, trouble = known.facts, known.trouble
    why = trouble.reason if trouble is not None else ""
    # Before everything else: the facts of a lost card are those of an old reading.
    if known.is_lost:
        return CardHealth.LOST, why or "it does not answer any more"
    # This hides the reason of an XID from the next agent. No harm: an uncordon forgets XIDs anyway.
    if facts.uuid in orders.cordoned:
        return CardHealth.CORDONED, orders.cordoned[facts.uuid] or "by a person"
    if facts.is_split:
        return CardHealth.CORDONED, "MIG mode is on: its parts cannot be offered yet"
    if facts.memory_mib < unit_mib:
        return CardHealth.UNHEALTHY, f"{facts.memory_mib} MiB are less than a unit of {unit_mib}"
    # Before the memory errors: the driver counts those again, but it reports an XID once, and the
    # next agent knows of it only by the published reason.
    if trouble is not None and trouble.health is CardHealth.UNHEALTHY:
        return trouble.health, why
    if silence:
        return CardHealth.UNHEALTHY, silence
    if known.errors >= _STEADY_LOOKS:
        return CardHealth.UNHEALTHY, f"the driver cannot read it: {known.error}"
    if facts.ecc_uncorrected:
        return CardHealth.UNHEALTHY, f"{facts.ecc_uncorrected} uncorrected memory errors"
    if trouble is not None:
        return trouble.health, why
    return CardHealth.HEALTHY, ""


def waits_for_time(cards: NodeCards) -> bool:
    """Whether an unchanged reading can still lead to another inventory later."""
    return any(known.trouble and known.trouble.until_s for known in cards.cards)


def changed_cards(before: Inventory, after: Inventory) -> Iterable[tuple[Card | None, Card]]:
    """Cards whose health or reason has changed, and new cards, in the order of `after`."""
    known = {card.uuid: card for card in before.cards}
    for card in after.cards:
        old = known.get(card.uuid)
        if old is None or (old.health, old.reason) != (card.health, card.reason):
            yield old, card
