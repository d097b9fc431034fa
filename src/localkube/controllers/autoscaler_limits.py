"""How fast and how far an autoscaler may change a size. Pure.

A wish is the size that the metrics propose. Without `spec.behavior` the size goes down to the
highest wish of the last five minutes at most, and up to twice the size or four, whichever is more.
With it, its stabilization windows and policies decide."""

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
    """A wish, or by how many pods the size has changed, and when."""

    count: int
    at: datetime.datetime


@dataclass(slots=True)
class ScaleHistory:
    """The recent wishes and changes of one autoscaler."""

    wishes: list[Past] = field(default_factory=list)
    changes: list[Past] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Allowed:
    replicas: int
    able: tuple[str, str]  # reason and message of AbleToScale
    limited: tuple[str, str]  # of ScalingLimited
    is_limited: bool


def allow(
    spec: Obj, history: ScaleHistory, current: int, wish: int, now: datetime.datetime
) -> Allowed:
    """The size that is allowed for a wish. Adds the wish to the history."""
    behavior: Obj | None = spec.get("behavior")
    lowest, highest = _recent(spec, history, wish, now)
    if behavior is None:
        steady, held = highest, _HELD_DOWN
    else:
        steady = min(max(current, lowest), highest)
        held = _HELD_UP if wish >= current else _HELD_DOWN
    size, limited = _clamped(steady, *_ranges(spec, history, current, steady, now))
    return Allowed(size, _READY if steady == wish else held, limited, size != steady)


_Bound = tuple[int, tuple[str, str]]  # a size; reason and message if it limits the wish


def _ranges(
    spec: Obj, history: ScaleHistory, current: int, steady: int, now: datetime.datetime
) -> tuple[_Bound, _Bound]:
    behavior: Obj | None = spec.get("behavior")
    least: int = spec.get("minReplicas", 1)
    slow, most, fast = least, spec["maxReplicas"], spec["maxReplicas"]
    if behavior is None:
        fast = max(2 * current, 4)
    elif steady > current:
        fast = max(current, rate_limit(behavior["scaleUp"], history.changes, current, now, 1))
    elif steady < current:
        slow = min(current, rate_limit(behavior["scaleDown"], history.changes, current, now, -1))
    low = (slow, _TOO_FAST_DOWN) if least < slow else (least, _TOO_FEW)
    high = (fast, _TOO_FAST_UP) if fast < most else (most, _TOO_MANY)
    return low, high


def _clamped(size: int, low: _Bound, high: _Bound) -> _Bound:
    if size < low[0]:
        return low
    return high if size > high[0] else (size, _WITHIN)


def _recent(spec: Obj, history: ScaleHistory, wish: int, now: datetime.datetime) -> tuple[int, int]:
    """The lowest wish of the window for scaling up, the highest of the window for scaling down."""
    behavior = spec.get("behavior") or {}
    up_s = (behavior.get("scaleUp") or {}).get("stabilizationWindowSeconds", 0)
    down = behavior.get("scaleDown") or {}
    down_s = down.get("stabilizationWindowSeconds", DOWN_WINDOW_S)
    lowest = min([wish, *_since(history.wishes, now, up_s)])
    highest = max([wish, *_since(history.wishes, now, down_s)])
    longest = now - datetime.timedelta(seconds=max(up_s, down_s))
    history.wishes = [past for past in history.wishes if past.at > longest]
    history.wishes.append(Past(wish, now))
    return lowest, highest


def _since(past: Sequence[Past], now: datetime.datetime, seconds: float) -> list[int]:
    begin = now - datetime.timedelta(seconds=seconds)
    return [each.count for each in past if each.at > begin]


def rate_limit(
    rules: Obj, changes: Sequence[Past], current: int, now: datetime.datetime, way: int
) -> int:
    """How large (`way` 1) or small (-1) the size may become by the policies. Each policy allows a
    change by a number of pods, or by a percentage, in a period. `selectPolicy` says whether the
    largest or the smallest of these changes counts."""
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


def remember_change(spec: Obj, history: ScaleHistory, change: int, now: datetime.datetime) -> None:
    behavior = spec.get("behavior") or {}
    periods = [
        policy["periodSeconds"]
        for rules in behavior.values()
        for policy in rules.get("policies") or ()
    ]
    longest = now - datetime.timedelta(seconds=max(periods, default=0))
    history.changes = [past for past in history.changes if past.at > longest]
    if periods:
        history.changes.append(Past(change, now))
