"""The sizes of replica sets in a rollout: examples, and simulations of whole rollouts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.controllers.deployment_sets import (
    REVISION,
    Bounds,
    Size,
    bounds,
    new_size,
    old_sizes,
    proportional_sizes,
    revision_of,
)
from localkube.controllers.pods import count_of


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        ("25%", 10, 3, 2),
        ("0%", 10, 0, 0),
        ("100%", 3, 3, 3),
        ("1%", 0, 0, 0),
        (f"{'0' * 5000}50%", 4, 2, 2),
    ],
)
def test_shares_are_rounded_up_for_surge_and_down_for_absence(
    value: int | str, total: int, up: int, down: int
) -> None:
    assert count_of(value, total, round_up=True) == up
    assert count_of(value, total, round_up=False) == down


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (4, "25%", "25%", Bounds(4, 1, 1)),
        (2, "0%", "1%", Bounds(2, 0, 1)),  # never both zero
        (1, 1, 0, Bounds(1, 1, 0)),
        (2, 0, 5, Bounds(2, 0, 2)),
        (0, "25%", "25%", Bounds(0, 0, 0)),
    ],
)
def test_bounds_never_forbid_every_step(
    replicas: int, surge: int | str, unavailable: int | str, expected: Bounds
) -> None:
    assert bounds(replicas, surge, unavailable) == expected


def test_the_new_set_grows_into_the_surge() -> None:
    limits = Bounds(10, 3, 2)
    assert new_size(limits, Size("new", 0, 0), [Size("old", 10, 10)]) == 3
    assert new_size(limits, Size("new", 3, 0), [Size("old", 8, 8)]) == 5
    assert new_size(limits, Size("new", 5, 0), [Size("old", 8, 8)]) == 5
    assert new_size(limits, Size("new", 12, 12), []) == 10


def test_old_sets_shrink_as_far_as_availability_allows() -> None:
    limits = Bounds(10, 3, 2)
    assert old_sizes(limits, Size("new", 3, 0), [Size("old", 10, 10)]) == {"old": 8}
    assert old_sizes(limits, Size("new", 5, 0), [Size("old", 8, 8)]) == {}
    assert old_sizes(limits, Size("new", 5, 4), [Size("old", 8, 8)]) == {"old": 4}


def test_pods_that_an_old_set_is_about_to_delete_are_not_counted_as_available() -> None:
    # The old set was told to shrink to 2, and has not yet reported that its third pod is gone.
    late = Size("old", 2, 3)
    assert old_sizes(Bounds(3, 1, 0), Size("new", 2, 2), [late]) == {"old": 1}


def test_broken_pods_go_first_and_the_oldest_sets_before_others() -> None:
    limits = Bounds(4, 0, 1)
    found = [Size("a", 2, 2), Size("b", 2, 1)]
    assert old_sizes(limits, Size("new", 0, 0), found) == {"b": 1}
    found = [Size("a", 2, 2), Size("b", 2, 2)]
    assert old_sizes(limits, Size("new", 0, 0), found) == {"a": 1}


def test_a_resize_in_mid_rollout_keeps_the_proportions() -> None:
    # The example in Kubernetes' documentation: from 10 to 15 replicas, with maxSurge 3.
    sets = [Size("old", 8, 8, made_for=13), Size("new", 5, 0, made_for=13)]
    assert proportional_sizes(Bounds(15, 3, 2), sets) == {"old": 11, "new": 7}
    assert proportional_sizes(Bounds(0, 0, 0), sets) == {"old": 0, "new": 0}


def test_of_two_equal_sets_the_newer_grows_or_the_older_shrinks() -> None:
    sets = [Size("old", 2, 2, made_for=4), Size("new", 2, 2, made_for=4)]
    assert proportional_sizes(Bounds(5, 0, 1), sets) == {"old": 2, "new": 3}
    assert proportional_sizes(Bounds(3, 0, 1), sets) == {"old": 1, "new": 2}


sizes = st.builds(
    Size,
    st.just(""),
    st.integers(1, 6),
    st.just(0),
    st.integers(0, 14),
)


@given(st.integers(0, 8), st.integers(0, 3), st.lists(sizes, min_size=1, max_size=4))
def test_a_resize_goes_towards_the_allowed_sum(
    replicas: int, surge: int, found: list[Size]
) -> None:
    limits = Bounds(replicas, surge, 1)
    sets = [replace(size, name=str(number)) for number, size in enumerate(found)]
    chosen = proportional_sizes(limits, sets)
    before, after = sum(size.wanted for size in sets), sum(chosen.values())
    allowed = limits.most if replicas else 0
    if before <= allowed:
        assert after == allowed
        assert all(chosen[size.name] >= size.wanted for size in sets)
    else:
        assert allowed <= after < before
        assert all(0 <= chosen[size.name] <= size.wanted for size in sets)


@dataclass
class World:
    """Simulated replica sets, oldest first, the last one new. Pods become available in any order,
    and each set reports its availability whenever it likes: what the rollout sees may be old."""

    limits: Bounds
    sets: list[Size]
    reported: dict[str, int]

    def act(self) -> bool:
        *old, new = [replace(size, available=self.reported[size.name]) for size in self.sets]
        grown = new_size(self.limits, new, old)
        sizes = {} if grown == new.wanted else {new.name: grown}
        sizes = sizes or old_sizes(self.limits, new, old)
        self.sets = [_resized(size, sizes.get(size.name, size.wanted)) for size in self.sets]
        return bool(sizes)

    def rounds(self, order: random.Random) -> Iterator[None]:
        for _ in range(400):
            acted = self.act()
            yield
            late = [size for size in self.sets if size.available != self.reported[size.name]]
            waiting = [n for n, size in enumerate(self.sets) if size.available < size.wanted]
            if late and (not waiting or order.random() < 0.5):
                size = order.choice(late)
                self.reported[size.name] = size.available
            elif waiting:
                number = order.choice(waiting)
                size = self.sets[number]
                self.sets[number] = replace(size, available=size.available + 1)
            elif not acted:
                return
        pytest.fail("the rollout never ends")


def _resized(size: Size, wanted: int) -> Size:
    return replace(size, wanted=wanted, available=min(size.available, wanted))


limits_of_rollouts = st.builds(
    bounds,
    st.integers(0, 6),
    st.integers(0, 3) | st.sampled_from(["25%", "50%", "100%"]),
    st.integers(0, 3) | st.sampled_from(["25%", "50%", "100%"]),
)
orders = st.integers(0, 9).map(random.Random)


@given(limits_of_rollouts, st.lists(st.integers(0, 6), max_size=3), orders)
def test_a_rollout_keeps_its_promises_and_ends(
    limits: Bounds, shares: list[int], order: random.Random
) -> None:
    old = [Size(str(number), share, share) for number, share in enumerate(shares)]
    sets = [*old, Size("new", 0, 0)]
    world = World(limits, sets, {size.name: size.available for size in sets})
    most = max(limits.most, sum(shares))
    least = min(limits.least, sum(shares))
    for _ in world.rounds(order):
        assert sum(size.wanted for size in world.sets) <= most
        assert sum(size.available for size in world.sets) >= least
    assert [size.wanted for size in world.sets] == [0] * len(old) + [limits.replicas]


@pytest.mark.parametrize("text", ["9" * 5000, "9223372036854775807", "²", "-1", "x"])
def test_a_revision_that_is_no_number_of_32_bits_counts_as_none(text: str) -> None:
    obj = {"metadata": {"annotations": {REVISION: text}}}
    assert revision_of(obj) == 0
