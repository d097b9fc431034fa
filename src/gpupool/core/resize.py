"""Compares two allocations of one pod, before and after a resize."""

from collections.abc import Callable
from dataclasses import replace

from gpupool.core.gpu import Allocation, CardShare, ContainerGpus

ONLY = ""  # in a resize request: the only container with a share


def larger(one: Allocation, other: Allocation) -> Allocation:
    """The larger share of each container: covers both allocations."""
    return _joined(one, other, lambda a, b: a if a.units >= b.units else b)


def shrinking(before: Allocation, after: Allocation) -> tuple[ContainerGpus, ...]:
    """The containers, as in `after`, that have less than before."""
    had = {gpus.container: gpus for gpus in before.containers}
    return tuple(
        gpus
        for gpus in after.containers
        if any(
            new.units < old.units
            for old, new in zip(had[gpus.container].shares, gpus.shares, strict=True)
        )
    )


def _joined(
    one: Allocation, other: Allocation, choose: Callable[[CardShare, CardShare], CardShare]
) -> Allocation:
    return Allocation(
        tuple(
            replace(
                mine,
                shares=tuple(choose(a, b) for a, b in zip(mine.shares, theirs.shares, strict=True)),
            )
            for mine, theirs in zip(one.containers, other.containers, strict=True)
        ),
        one.unread or other.unread,
    )
