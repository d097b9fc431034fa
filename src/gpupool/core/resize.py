"""Two allocations of one pod, before and after: which parts of it grow, which shrink."""

from collections.abc import Callable
from dataclasses import replace

from gpupool.core.gpu import Allocation, CardShare, ContainerGpus

ONLY = ""  # in a wish: the container that has a share, where there is only one


def larger(one: Allocation, other: Allocation) -> Allocation:
    """The larger share of each container: what both together may use."""
    return _joined(one, other, lambda a, b: a if a.units >= b.units else b)


def shrinking(before: Allocation, after: Allocation) -> tuple[ContainerGpus, ...]:
    """The containers, as they will be, that are left with less than they had."""
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
        )
    )
