"""How long ago, as kubectl shows it: "5m55s", "18h", "2d3h", "3y45d"."""

from kubeclient.times import seconds_of

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

_LONGEST = 2**63 // 10**9  # Go counts nanoseconds: no duration is longer

UNKNOWN = "<unknown>"
INVALID = "<invalid>"


def since(timestamp: str | None, now_s: float) -> str:
    if not timestamp:
        return UNKNOWN
    then_s = seconds_of(timestamp)
    return INVALID if then_s is None else human_duration(now_s - then_s)


def human_duration(duration_s: float) -> str:
    """Two or three significant figures. Clocks may differ by up to two seconds."""
    whole = min(int(duration_s), _LONGEST)
    if whole < -1:
        return INVALID
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _pair(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _pair(whole, _HOUR, "h", _MINUTE, "m")
    return _of_days(whole)


def _of_days(whole: int) -> str:
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _pair(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _pair(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _pair(whole: int, unit: int, mark: str, small: int, small_mark: str) -> str:
    rest = whole % unit // small
    return f"{whole // unit}{mark}{rest}{small_mark}" if rest else f"{whole // unit}{mark}"
