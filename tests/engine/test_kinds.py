"""KindCounts: how many pods of each kind are held."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gpupool.engine.kinds import Kind, KindCounts, kind_of
from tests.engine.building import shared


def counted(counts: KindCounts) -> dict[Kind, int]:
    pairs = zip(counts.kinds, counts.pods, strict=True)
    return {kind: pods for kind, pods in pairs if kind is not None}


@given(steps=st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=40))
def test_counts_are_those_of_a_counter_and_numbers_are_used_again(
    steps: list[tuple[bool, int]],
) -> None:
    counts, expected = KindCounts(), Counter[Kind]()
    for comes, units in steps:
        kind = kind_of(shared("u", units))
        if comes:
            counts.add(kind)
            expected[kind] += 1
        elif expected[kind]:
            counts.remove(kind)
            expected[kind] -= 1
        assert counted(counts) == +expected
        assert len(counts) == len(+expected)
    assert len(counts.kinds) <= 4
