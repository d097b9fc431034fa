"""The states of cards: health, recovery, and what survives a restart of the agent."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.agent.cards import (
    NO_ORDERS,
    NodeCards,
    Orders,
    after_look,
    after_silence,
    changed_cards,
    inventory_after,
    never_read,
    remembered,
)
from gpupool.agent.xid_policy import load_policy
from gpupool.contract.inventory import inventory_of, inventory_text
from gpupool.core.gpu import Card, CardHealth, Inventory
from gpupool.hardware.driver import CardLook, Look, Xid

POLICY = load_policy()
A = CardLook(0, "GPU-a", "Tesla M40", 12209)
B = CardLook(1, "GPU-b", "Tesla M40", 12209)
LOOK = Look("550.1", 12040, "boot-1", (A, B))
GONE = CardLook(0, is_lost=True)
MINUTE = 60.0


class Node:
    """A node that is read once a second."""

    def __init__(self) -> None:
        self.known = NodeCards()
        self.orders = NO_ORDERS
        self.now_s = 1000.0

    def see(self, *cards: CardLook, xids: tuple[Xid, ...] = (), boot: str = "boot-1") -> Inventory:
        self.now_s += 1
        look = Look("550.1", 12040, boot, cards or (A, B), xids)
        self.known = after_look(self.known, look, self.orders, POLICY, self.now_s)
        return self.inventory

    @property
    def inventory(self) -> Inventory:
        return inventory_after(self.known, self.orders, 1024)

    def restart_the_agent(self) -> None:
        published = inventory_of(inventory_text(self.inventory))
        self.known = remembered(published, POLICY, self.now_s)


@pytest.fixture
def node() -> Node:
    node = Node()
    node.see()
    return node


def healths(inventory: Inventory) -> list[CardHealth]:
    return [card.health for card in inventory.cards]


HEALTHY, SUSPECT, UNHEALTHY = CardHealth.HEALTHY, CardHealth.SUSPECT, CardHealth.UNHEALTHY
LOST, CORDONED = CardHealth.LOST, CardHealth.CORDONED


def test_cards_that_answer_are_healthy(node: Node) -> None:
    assert node.inventory == Inventory(
        (Card(0, "GPU-a", "Tesla M40", 12209), Card(1, "GPU-b", "Tesla M40", 12209)),
        "550.1",
        "boot-1",
    )


def test_an_error_of_a_program_leaves_the_card_healthy(node: Node) -> None:
    programs = tuple(Xid("GPU-a", number) for number in (13, 31, 43, 45, 68, 109))
    assert healths(node.see(xids=programs)) == [HEALTHY, HEALTHY]


def test_a_suspect_card_is_healthy_again_after_a_quiet_time(node: Node) -> None:
    seen = node.see(xids=(Xid("GPU-b", 63),))
    assert healths(seen) == [HEALTHY, SUSPECT]
    assert seen.cards[1].reason == "XID 63: bad memory was taken out of use"
    node.now_s += 9 * MINUTE
    assert healths(node.see()) == [HEALTHY, SUSPECT]
    node.now_s += 1 * MINUTE
    assert healths(node.see()) == [HEALTHY, HEALTHY]


def test_another_error_restarts_the_quiet_time(node: Node) -> None:
    node.see(xids=(Xid("GPU-b", 63),))
    node.now_s += 9 * MINUTE
    node.see(xids=(Xid("GPU-b", 94),))
    node.now_s += 9 * MINUTE
    assert healths(node.see()) == [HEALTHY, SUSPECT]


def test_an_unhealthy_card_stays_unhealthy_until_a_person_clears_it(node: Node) -> None:
    node.see(xids=(Xid("GPU-a", 48), Xid("GPU-a", 63)))
    node.now_s += 1000 * MINUTE
    assert healths(node.see()) == [UNHEALTHY, HEALTHY]
    node.orders = Orders({}, {"GPU-a": ""})
    assert healths(node.see()) == [HEALTHY, HEALTHY]


def test_an_unknown_xid_makes_a_card_suspect(node: Node) -> None:
    assert healths(node.see(xids=(Xid("GPU-a", 4711),))) == [SUSPECT, HEALTHY]


def test_an_xid_that_names_no_card_concerns_all_cards(node: Node) -> None:
    assert healths(node.see(xids=(Xid("", 119),))) == [UNHEALTHY, UNHEALTHY]


def test_a_card_is_healthy_again_when_its_memory_errors_are_back_to_zero(node: Node) -> None:
    seen = node.see(replace(A, ecc_uncorrected=2), B)
    assert healths(seen) == [UNHEALTHY, HEALTHY]
    assert seen.cards[0].reason == "2 uncorrected memory errors"
    assert healths(node.see()) == [HEALTHY, HEALTHY]


def test_a_lost_card_keeps_its_index_and_comes_back_healthy(node: Node) -> None:
    seen = node.see(GONE, B, xids=(Xid("GPU-a", 79),))
    assert healths(seen) == [LOST, HEALTHY]
    assert seen.cards[0].uuid == "GPU-a"
    assert seen.cards[0].reason == "XID 79: the card has fallen off the bus"
    assert healths(node.see()) == [HEALTHY, HEALTHY]


def test_a_card_that_the_driver_no_longer_lists_is_lost(node: Node) -> None:
    assert healths(node.see(A)) == [HEALTHY, LOST]


def test_a_lost_card_gives_up_its_index_if_the_driver_reuses_it(node: Node) -> None:
    seen = node.see(replace(B, index=0))
    assert [(card.index, card.uuid, card.health) for card in seen.cards] == [
        (0, "GPU-b", HEALTHY),
        (1, "GPU-a", LOST),
    ]
    assert [card.uuid for card in node.see().cards] == ["GPU-a", "GPU-b"]


def test_a_reboot_forgets_missing_cards_and_old_errors(node: Node) -> None:
    node.see(xids=(Xid("GPU-a", 48),))
    seen = node.see(A, boot="boot-2")
    assert [(card.uuid, card.health) for card in seen.cards] == [("GPU-a", HEALTHY)]


def test_a_person_can_clear_a_card_that_was_removed(node: Node) -> None:
    node.see(A)
    node.orders = Orders({}, {"GPU-b": ""})
    assert [card.uuid for card in node.see(A).cards] == ["GPU-a"]


def test_a_card_stays_cordoned_until_it_is_uncordoned(node: Node) -> None:
    node.orders = Orders({"GPU-b": "fan is loud"}, {})
    seen = node.see()
    assert healths(seen) == [HEALTHY, CORDONED]
    assert seen.cards[1].reason == "fan is loud"
    node.orders = NO_ORDERS
    assert healths(node.see()) == [HEALTHY, HEALTHY]


def test_a_new_agent_restores_what_the_last_one_published(node: Node) -> None:
    node.see(GONE, B, xids=(Xid("GPU-b", 48),))
    before = node.inventory
    node.restart_the_agent()
    assert node.see(GONE, B) == before
    assert healths(before) == [LOST, UNHEALTHY]


def test_only_errors_from_xids_are_restored(node: Node) -> None:
    node.see(replace(A, ecc_uncorrected=1), B)
    node.restart_the_agent()
    assert healths(node.see()) == [HEALTHY, HEALTHY]


def test_a_card_that_never_answered_is_left_out() -> None:
    assert Node().see(GONE, B).cards == (Card(1, "GPU-b", "Tesla M40", 12209),)


def test_a_card_that_the_driver_cannot_read_is_unhealthy_alone(node: Node) -> None:
    unread = CardLook(0, error="Timeout")
    assert healths(node.see(unread, B)) == healths(node.see(unread, B)) == [HEALTHY, HEALTHY]
    inventory = node.see(unread, B)
    assert healths(inventory) == [UNHEALTHY, HEALTHY]
    assert inventory.cards[0].reason == "the driver cannot read it: Timeout"
    assert healths(node.see()) == [HEALTHY, HEALTHY]


def test_a_single_failed_reading_changes_nothing(node: Node) -> None:
    before = node.inventory
    for _ in range(5):
        assert node.see(CardLook(0, "GPU-a", error="In Use"), B) == before
        assert node.see() == before


def test_what_xids_did_survives_failed_readings_and_a_restart(node: Node) -> None:
    node.see(xids=(Xid("GPU-a", 48),))
    for _ in range(5):
        node.see(CardLook(0, error="Timeout"), B)
    node.restart_the_agent()
    (bad, good) = node.see().cards
    assert (bad.health, bad.reason[:7], good.health) == (UNHEALTHY, "XID 48:", HEALTHY)


def test_while_the_driver_is_silent_cards_stay_published_as_unhealthy(node: Node) -> None:
    node.see(xids=(Xid("GPU-a", 48),))
    node.known = after_silence(node.known, "it hangs")
    assert healths(node.inventory) == [UNHEALTHY, UNHEALTHY]
    assert [card.reason for card in node.inventory.cards][1] == "it hangs"
    node.restart_the_agent()
    assert [card.reason[:7] for card in node.see().cards] == ["XID 48:", ""]
    assert healths(node.inventory) == [UNHEALTHY, HEALTHY]


def test_cards_that_were_never_read_are_told_apart(node: Node) -> None:
    unread = CardLook(2, error="Timeout")
    look = replace(LOOK, cards=(CardLook(0, error="In Use"), B, unread))
    assert list(never_read(node.known, look)) == [unread]
    assert len(node.see(*look.cards).cards) == 2


def test_cards_in_mig_mode_and_tiny_ones_take_no_pods(node: Node) -> None:
    seen = node.see(replace(A, is_split=True), replace(B, memory_mib=512))
    assert healths(seen) == [CORDONED, UNHEALTHY]


def test_outside_memory_is_published_when_several_looks_agree(node: Node) -> None:
    busy = replace(A, outside_mib=700)
    assert node.see(busy, B).cards[0].outside_mib == 0
    node.see(busy, B)
    assert node.see(busy, B).cards[0].outside_mib == 512  # in steps of 256
    assert node.see().cards[0].outside_mib == 0


def test_only_changes_become_events(node: Node) -> None:
    before = node.inventory
    after = node.see(xids=(Xid("GPU-b", 48),))
    assert [(new.uuid, new.health) for _, new in changed_cards(before, after)] == [
        ("GPU-b", UNHEALTHY)
    ]
    assert list(changed_cards(after, node.see())) == []


LOOKS = st.lists(
    st.tuples(
        st.lists(st.sampled_from((A, B)), unique=True),
        st.lists(st.builds(Xid, st.sampled_from(("GPU-a", "")), st.sampled_from((13, 48, 63)))),
        st.sampled_from(("boot-1", "boot-2")),
    ),
    max_size=5,
)


@given(LOOKS)
def test_after_a_clean_boot_all_cards_that_answer_are_healthy(
    looks: list[tuple[list[CardLook], list[Xid], str]],
) -> None:
    node = Node()
    for cards, xids, boot in looks:
        node.see(*cards, xids=tuple(xids), boot=boot)
    assert healths(node.see(A, B, boot="boot-3")) == [HEALTHY, HEALTHY]


@given(LOOKS)
def test_no_uuid_and_no_index_is_ever_listed_twice(
    looks: list[tuple[list[CardLook], list[Xid], str]],
) -> None:
    node = Node()
    for cards, xids, boot in looks:
        counted = [replace(card, index=index) for index, card in enumerate(cards)]
        found = node.see(*counted, xids=tuple(xids), boot=boot).cards
        assert len({card.uuid for card in found}) == len(found)
        assert len({card.index for card in found}) == len(found)
