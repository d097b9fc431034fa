"""How a rollout moves pods from old replica sets to the new one. Pure arithmetic.

Two promises hold at every step: never more than replicas + maxSurge pods, never fewer than
replicas - maxUnavailable available ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    replicas: int
    surge: int
    unavailable: int


@dataclass(frozen=True, slots=True)
class Size:
    """A replica set as the rollout sees it."""

    name: str
    wanted: int  # spec.replicas
    available: int
    ready: int = 0


def bounds(replicas: int, max_surge: int | str, max_unavailable: int | str) -> Bounds:
    """Percentages of the size: surge rounded up, unavailable down; both zero would never move."""
    surge = resolved(max_surge, replicas, round_up=True)
    unavailable = resolved(max_unavailable, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, min(unavailable, replicas))


def resolved(value: int | str, replicas: int, *, round_up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int(value.rstrip("%")) * replicas
    return -(-hundredths // 100) if round_up else hundredths // 100


def new_size(limits: Bounds, new: Size, old: Sequence[Size]) -> int:
    """How large the new replica set may be now."""
    if new.wanted >= limits.replicas:
        return limits.replicas
    total = new.wanted + sum(size.wanted for size in old)
    room = limits.replicas + limits.surge - total
    if room <= 0:
        return new.wanted
    return new.wanted + min(room, limits.replicas - new.wanted)


def old_sizes(limits: Bounds, new: Size, old: Sequence[Size]) -> dict[str, int]:
    """How large each old replica set should be now; those that stay are left out. `old` comes
    oldest first."""
    total = new.wanted + sum(size.wanted for size in old)
    least = limits.replicas - limits.unavailable
    spare = total - least - (new.wanted - new.available)
    if spare <= 0:
        return {}
    sizes = {size.name: size.wanted for size in old}
    # First the pods that serve nobody: taking them away costs no availability.
    for size in old:
        broken = min(spare, size.wanted - size.available)
        if broken > 0:
            sizes[size.name] -= broken
            spare -= broken
    extra = new.available + sum(size.available for size in old) - least
    for size in old:
        less = min(max(extra, 0), sizes[size.name], spare)
        if less > 0:
            sizes[size.name] -= less
            extra -= less
            spare -= less
    before = {size.name: size.wanted for size in old}
    return {name: wanted for name, wanted in sizes.items() if wanted != before[name]}


def proportional_sizes(limits: Bounds, sets: Sequence[Size], were: int) -> dict[str, int]:
    """A deployment resized in mid-rollout: every replica set grows or shrinks by its share.
    `sets` comes newest first; `were` is the size that the sets were made for."""
    allowed = limits.replicas + limits.surge if limits.replicas else 0
    total = sum(size.wanted for size in sets)
    left = allowed - total
    if left == 0 or not total:
        return {}
    sizes: dict[str, int] = {}
    order = sorted(sets, key=lambda size: -size.wanted)
    for size in order:
        share = round(size.wanted * allowed / max(were, 1)) - size.wanted
        step = max(min(share, left), 0) if left > 0 else min(max(share, left), 0)
        sizes[size.name] = max(0, size.wanted + step)
        left -= sizes[size.name] - size.wanted
    first = order[0].name
    sizes[first] = max(0, sizes[first] + left)
    before = {size.name: size.wanted for size in sets}
    return {name: wanted for name, wanted in sizes.items() if wanted != before[name]}
