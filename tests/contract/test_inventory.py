import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.contract.inventory import BadInventory, inventory_of, inventory_text
from gpupool.core.gpu import Card, CardHealth, ContainerGpus, Inventory, Isolation, Wall, weakest

small = st.integers(0, 3)
cards = st.builds(
    Card,
    small,
    st.sampled_from(["GPU-a", "GPU-b"]),
    st.text(max_size=3),
    small,
    st.sampled_from(CardHealth),
    st.text(max_size=3),
    st.lists(st.tuples(small, small), max_size=2).map(tuple),
    st.integers(-1, 1),
    small,
)


CARD = {"index": 0, "uuid": "GPU-a", "model": "T4", "memoryMiB": 15079}


def with_card(unit: int = 1024, **fields: object) -> str:
    return json.dumps({"version": 1, "unitMiB": unit, "cards": [CARD | fields]})


@given(st.lists(cards, max_size=3, unique_by=lambda card: card.uuid), st.text(max_size=3))
def test_an_inventory_is_read_as_it_was_written(found: list[Card], driver: str) -> None:
    inventory = Inventory(tuple(found), driver)
    assert inventory_of(inventory_text(inventory)) == inventory


def test_the_unit_of_a_node_is_kept() -> None:
    card = Card(0, "GPU-a", "T4", 15079, unit_mib=256)
    assert inventory_of(inventory_text(Inventory((card,)))).cards[0].units == 58


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Input data was truncated"),
        (json.dumps({"version": 9, "cards": []}), "version 9; this program reads version 1"),
        (json.dumps({"version": 1, "cards": [], "unitMiB": 0}), "Expected `int` >= 1"),
        (json.dumps({"version": 1, "cards": [{"index": "x"}]}), "Expected `int`"),
        (with_card(memoryMiB=2**41), "Expected `int` <= 16777216"),
        (with_card(memoryMiB=2**63), "Expected `int` <= 16777216"),
        (with_card(memoryMiB=-1), "Expected `int` >= 0"),
        (with_card(memoryMiB=10**400), "Expected `int` <= 16777216"),
        (with_card(memoryMiB=float("nan")), "malformed"),
        (with_card(outsideMiB=2**41), "Expected `int` <= 16777216"),
        (with_card(index=2**41), "Expected `int` <= 65535"),
        (with_card(links=[[0, 2**41]]), "Expected `int` <= 65535"),
        (with_card(uuid=""), "length >= 1"),
        (with_card(uuid="G" * 1000), "length <= 128"),
        (with_card(unit=1, memoryMiB=2**21), "2097152 units on card 0; at most 1048576 are read"),
        ('{"x": ' + "[" * 100_000, "nested too deeply"),
        (
            json.dumps({"version": 1, "cards": [CARD, CARD | {"index": 1}]}),
            "cards 0 and 1 have one uuid, GPU-a",
        ),
        (json.dumps({"version": 1, "cards": [CARD] * 10_000}), "at most 262144 are read"),
        (json.dumps({"version": 1, "cards": [CARD] * 65}), "65 cards; at most 64 are read"),
    ],
)
def test_a_bad_inventory_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(BadInventory, match=said):
        inventory_of(text)


def test_walls_are_kept_and_a_wall_that_only_newer_agents_know_is_unknown() -> None:
    inventory = Inventory(wall=Wall.DRIVER, other_walls=(("uid-1", Wall.LIMITER),))
    assert inventory_of(inventory_text(inventory)) == inventory
    moats = {"isolation": "moat", "otherIsolations": {"u": "moat"}}
    newer = json.dumps({"version": 1, "cards": [], **moats})
    assert inventory_of(newer) == Inventory()


def test_a_pod_is_held_by_the_wall_of_its_node_unless_the_agent_says_otherwise() -> None:
    inventory = Inventory(wall=Wall.DRIVER, other_walls=(("uid-1", Wall.LIMITER),))
    limited = ContainerGpus("c", (), Isolation.LIMIT)
    assert inventory.wall_of("uid-1", limited) is Wall.LIMITER
    assert inventory.wall_of("uid-2", limited) is Wall.DRIVER
    assert inventory.wall_of("uid-2", ContainerGpus("c", (), Isolation.NONE)) is Wall.NONE
    assert inventory.wall_of("uid-2", ContainerGpus("c", (), Isolation.WHOLE)) is None


def test_the_allocation_tells_the_isolation_that_no_agent_has_told_yet() -> None:
    """Also of a pod from before its node stopped isolating, which the agent has not seen yet."""
    limited = ContainerGpus("c", (), Isolation.LIMIT)
    by_driver = ContainerGpus("c", (), Isolation.LIMIT, by_driver=True)
    for inventory in (Inventory(), Inventory(wall=Wall.NONE)):
        assert inventory.wall_of("uid", limited) is Wall.LIMITER
        assert inventory.wall_of("uid", by_driver) is Wall.DRIVER


def test_a_pod_is_isolated_as_far_as_its_least_isolated_container() -> None:
    assert weakest([Wall.DRIVER, Wall.NONE, Wall.LIMITER]) is Wall.NONE
    assert weakest([Wall.LIMITER, Wall.DRIVER]) is Wall.LIMITER
    assert weakest([]) is None
