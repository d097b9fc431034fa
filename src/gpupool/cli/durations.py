"""Durations on the command line: 30m, 2h, 7d."""

import re

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class Duration(click.ParamType[int]):
    """Seconds, from a number and a unit."""

    name = "duration"

    def __init__(self, least_s: int = 60, most_s: int = 90 * 86400) -> None:
        self._least_s, self._most_s = least_s, most_s

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9]{1,6})([smhdw])", str(value).strip())
        seconds = int(found[1]) * _UNITS[found[2]] if found else -1
        if not self._least_s <= seconds <= self._most_s:
            self.fail(
                f"wanted a time from {words(self._least_s)} to {words(self._most_s)}, such as 30m, "
                f'2h or 7d, found "{str(value)[:60]}".'
            )
        return seconds


def words(seconds: float) -> str:
    """The same, for people: 90 s, 12 min, 3.5 h, 14 d."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h".replace(".0 h", " h")
    return f"{seconds / 86400:.0f} d"
