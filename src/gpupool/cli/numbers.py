"""Numbers on the command line, with words for what is none. click's own speak of its types."""

import math

import click


def told(text: str) -> str:
    """As much of what somebody typed as a message needs."""
    return text if len(text) <= 60 else f"{text[:57]}..."


class Whole(click.IntRange):
    """A whole number in a range."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        text = str(value)
        # Length before value: Python refuses to read thousands of digits.
        is_number = text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal()
        if not is_number or len(text) > 15 or not self.min <= int(text) <= self.max:  # type: ignore[operator]  # both ends are given
            words = f"wanted a whole number from {self.min} to {self.max}"
            self.fail(f'{words}, found "{told(text)}".')
        return int(text)


class Real(click.FloatRange):
    """A number in a range; neither infinite nor NaN, with which nothing compares."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        highest = math.inf if self.max is None else self.max
        if not math.isfinite(number) or not (self.min or 0) <= number <= highest:
            end = "" if self.max is None else f" to {self.max:g}"
            wanted = f"a number from {self.min or 0:g}{end}" if end else "a number of 0 or more"
            self.fail(f'wanted {wanted}, found "{str(value)[:60]}".')
        return number
