"""How fast and how far an autoscaler may go. Pure.

Without `behavior`: down to the highest wish of the last five minutes, up to twice the size or to
four. With it: as its windows and policies say.
"""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from kubeclient.objects import Obj

DOWN_WINDOW_S = 300
_READY = ("ReadyForNewScale", "recommended size matches current size")
_WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_UP = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_TOO_FAST_DOWN = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_HELD_UP = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_HELD_DOWN = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent "
    "recommendation",
)


@dataclass(frozen=True, slots=True)
class Past:
    """A number of pods at a time: a wish, or by how many the size has changed."""

    count: int
    at: datetime.datetime


@dataclass(slots=True)
class Memory:
    """Of one autoscaler."""

    wishes: list[Past] = field(default_factory=list)
    changes: list[Past] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Allowed:
    replicas: int
    able: tuple[str, str]  # reason and message of AbleToScale
    limited: tuple[str, str]  # of ScalingLimited
    is_limited: bool


def allow(spec: Obj, memory: Memory, current: int, wish: int, now: datetime.datetime) -> Allowed:
    """The size for a wish. Remembers the wish."""
    behavior: Obj | None = spec.get("behavior")
    lowest, highest = _recent(spec, memory, wish, now)
    if behavior is None:
        steady, held = highest, _HELD_DOWN
    else:
        steady = min(max(current, lowest), highest)
        held = _HELD_UP if wish >= current else _HELD_DOWN
    size, limited = _clamped(steady, *_ranges(spec, memory, current, steady, now))
    return Allowed(size, _READY if steady == wish else held, limited, size != steady)


_Bound = tuple[int, tuple[str, str]]  # and what to say at it


def _ranges(
    spec: Obj, memory: Memory, current: int, steady: int, now: datetime.datetime
) -> tuple[_Bound, _Bound]:
    behavior: Obj | None = spec.get("behavior")
    least: int = spec.get("minReplicas", 1)
    slow, most, fast = least, spec["maxReplicas"], spec["maxReplicas"]
    if behavior is None:
        fast = max(2 * current, 4)
    elif steady > current:
        fast = max(current, rate_limit(behavior["scaleUp"], memory.changes, current, now, 1))
    elif steady < current:
        slow = min(current, rate_limit(behavior["scaleDown"], memory.changes, current, now, -1))
    low = (slow, _TOO_FAST_DOWN) if least < slow else (least, _TOO_FEW)
    high = (fast, _TOO_FAST_UP) if fast < most else (most, _TOO_MANY)
    return low, high


def _clamped(size: int, low: _Bound, high: _Bound) -> _Bound:
    if size < low[0]:
        return low
    return high if size > high[0] else (size, _WITHIN)


def _recent(spec: Obj, memory: Memory, wish: int, now: datetime.datetime) -> tuple[int, int]:
    """The lowest wish of the window for going up, the highest of that for going down."""
    behavior = spec.get("behavior") or {}
    up_s = (behavior.get("scaleUp") or {}).get("stabilizationWindowSeconds", 0)
    down = behavior.get("scaleDown") or {}
    down_s = down.get("stabilizationWindowSeconds", DOWN_WINDOW_S)
    lowest = min([wish, *_since(memory.wishes, now, up_s)])
    highest = max([wish, *_since(memory.wishes, now, down_s)])
    longest = now - datetime.timedelta(seconds=max(up_s, down_s))
    memory.wishes = [past for past in memory.wishes if past.at > longest]
    memory.wishes.append(Past(wish, now))
    return lowest, highest


def _since(past: Sequence[Past], now: datetime.datetime, seconds: float) -> list[int]:
    begin = now - datetime.timedelta(seconds=seconds)
    return [each.count for each in past if each.at > begin]


def rate_limit(
    rules: Obj, changes: Sequence[Past], current: int, now: datetime.datetime, way: int
) -> int:
    """How large (`way` 1) or small (-1) it may become by the policies: each allows so many pods,
    or so much of the size, in a period. The most generous counts, or the least."""
    select = rules.get("selectPolicy", "Max")
    if select == "Disabled":
        return current
    limits: list[int] = []
    for policy in rules.get("policies") or ():
        begin = current - sum(_since(changes, now, policy["periodSeconds"]))
        if policy["type"] == "Pods":
            limits.append(begin + way * policy["value"])
        elif way > 0:
            limits.append(math.ceil(begin * (1 + policy["value"] / 100)))
        else:
            limits.append(int(begin * (1 - policy["value"] / 100)))
    if not limits:
        return current
    generous = max(limits) if way > 0 else min(limits)
    strict = min(limits) if way > 0 else max(limits)
    return strict if select == "Min" else generous


def remember_change(spec: Obj, memory: Memory, change: int, now: datetime.datetime) -> None:
    behavior = spec.get("behavior") or {}
    periods = [
        policy["periodSeconds"]
        for rules in behavior.values()
        for policy in rules.get("policies") or ()
    ]
    longest = now - datetime.timedelta(seconds=max(periods, default=0))
    memory.changes = [past for past in memory.changes if past.at > longest]
    if periods:
        memory.changes.append(Past(change, now))
