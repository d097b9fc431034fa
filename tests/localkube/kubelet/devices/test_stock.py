from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.devices.grants import chosen
from localkube.kubelet.devices.stock import GRACE_S, Stock

RESOURCE = "example.com/thing"


def listed(*ids: str) -> Stock:
    stock = Stock()
    stock.register(RESOURCE, "a")
    stock.listed(RESOURCE, "a", [(id, True) for id in ids])
    return stock


def counts(stock: Stock) -> tuple[int, int]:
    found = stock.counts()
    return found.allocatable[RESOURCE], found.capacity[RESOURCE]


def test_a_plugin_that_does_not_come_back_is_given_up() -> None:
    stock = listed("x", "y")
    assert stock.ended(RESOURCE, "a", now=100.0)
    assert counts(stock) == (0, 2)
    assert stock.is_away(RESOURCE)
    assert not stock.expire(100.0 + GRACE_S - 1)
    assert stock.expire(100.0 + GRACE_S)
    assert counts(stock) == (0, 0)
    assert not stock.is_away(RESOURCE)
    assert not stock.has(RESOURCE)
    assert not stock.expire(100.0 + 2 * GRACE_S)


def test_a_plugin_that_comes_back_late_counts_again() -> None:
    stock = listed("x")
    stock.ended(RESOURCE, "a", now=0.0)
    stock.expire(GRACE_S)
    stock.register(RESOURCE, "b")
    assert stock.listed(RESOURCE, "b", [("x", True)])
    assert counts(stock) == (1, 1)
    assert not stock.expire(GRACE_S * 3)


def test_a_replaced_plugin_no_longer_changes_the_devices() -> None:
    stock = listed("x")
    stock.register(RESOURCE, "b")
    assert not stock.listed(RESOURCE, "a", [])
    assert not stock.ended(RESOURCE, "a", now=0.0)
    assert counts(stock) == (1, 1)


@given(st.sets(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdefgh")), st.integers(0, 8))
def test_only_free_devices_are_chosen_each_once_and_enough(
    free: set[str], first: list[str], needed: int
) -> None:
    ids = chosen(needed, first, free)
    assert set(ids) <= free
    assert len(ids) == len(set(ids)) == min(needed, len(free))
    wanted = [id for id in dict.fromkeys(first) if id in free]
    assert list(ids[: len(wanted)]) == wanted[: len(ids)]
