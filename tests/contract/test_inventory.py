import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.contract.inventory import BadInventory, inventory_of, inventory_text
from gpupool.core.gpu import Card, CardHealth, Inventory

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


@given(st.lists(cards, max_size=3), st.text(max_size=3))
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
        (json.dumps({"version": 1, "cards": [], "unitMiB": 0}), "a unit of 0 MiB"),
        (json.dumps({"version": 1, "cards": [{"index": "x"}]}), "Expected `int`"),
    ],
)
def test_a_bad_inventory_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(BadInventory, match=said):
        inventory_of(text)
