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

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        return self.replicas - self.unavailable


@dataclass(frozen=True, slots=True)
class Size:
    """A replica set as the rollout sees it."""

    name: str
    wanted: int  # spec.replicas
    available: int
    made_for: int = 0  # the most pods that the deployment could have when this size was chosen


def bounds(replicas: int, max_surge: int | str, max_unavailable: int | str) -> Bounds:
    """Percentages of the size: surge rounded up, unavailable down; both zero would never move."""
    surge = resolved(max_surge, replicas, round_up=True)
    unavailable = resolved(max_unavailable, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, min(unavailable, replicas))


def resolved(value: int | str, total: int, *, round_up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int(value.rstrip("%")) * total
    return -(-hundredths // 100) if round_up else hundredths // 100


def new_size(limits: Bounds, new: Size, old: Sequence[Size]) -> int:
    """How large the new replica set may be now."""
    if new.wanted >= limits.replicas:
        return limits.replicas
    room = limits.most - new.wanted - sum(size.wanted for size in old)
    return new.wanted + max(0, min(room, limits.replicas - new.wanted))


def old_sizes(limits: Bounds, new: Size, old: Sequence[Size]) -> dict[str, int]:
    """How large each old replica set should be now; those that stay are left out. `old` comes
    oldest first."""
    total = new.wanted + sum(size.wanted for size in old)
    spare = total - limits.least - (new.wanted - new.available)
    if spare <= 0:
        return {}
    sizes = {size.name: size.wanted for size in old}
    # First the pods that serve nobody: taking them away costs no availability.
    for size in old:
        broken = min(spare, size.wanted - size.available)
        if broken > 0:
            sizes[size.name] -= broken
            spare -= broken
    extra = new.available + sum(size.available for size in old) - limits.least
    for size in old:
        less = min(extra, sizes[size.name])
        if less > 0:
            sizes[size.name] -= less
            extra -= less
    return {size.name: sizes[size.name] for size in old if sizes[size.name] != size.wanted}


def proportional_sizes(limits: Bounds, sets: Sequence[Size]) -> dict[str, int]:
    """A deployment resized in mid-rollout: every replica set grows or shrinks by its share, and
    what rounding leaves goes to the largest. `sets` come oldest first."""
    allowed = limits.most if limits.replicas else 0
    to_add = allowed - sum(size.wanted for size in sets)
    # Of equal ones, the newer grow first and the older shrink first.
    age = -1 if to_add > 0 else 1
    order = sorted(enumerate(sets), key=lambda place: (-place[1].wanted, age * place[0]))
    sizes: dict[str, int] = {}
    left = to_add
    for _, size in order:
        share = _share(limits, size)
        step = max(0, min(share, left)) if to_add > 0 else min(0, max(share, left))
        sizes[size.name] = size.wanted + step
        left -= step
    if order:
        largest = order[0][1].name
        sizes[largest] = max(0, sizes[largest] + left)
    return sizes


def _share(limits: Bounds, size: Size) -> int:
    if not limits.replicas:
        return -size.wanted
    if not size.made_for:
        return 0
    # Rounded half up: round() would go to the even neighbour.
    doubled = 2 * size.wanted * limits.most + size.made_for
    return doubled // (2 * size.made_for) - size.wanted
