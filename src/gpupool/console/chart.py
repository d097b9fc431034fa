"""Charts: lines over time as paths of SVG, and the same as a table. Pure.

`templates/parts/chart.html` draws them. A step of the line is the average of one stretch of time;
where nobody has looked there is a gap, never a zero.
"""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpupool.history.reader import Points
from gpupool.history.samples import Sample

WIDTH, HEIGHT = 600, 120
_MOST_ROWS = 24  # of the table
_ROOM = 1.08  # above the highest value
_LONG_S = 86_400  # longer charts have dates below, others times of day

Value = Callable[[Sample], float | None]


@dataclass(frozen=True, slots=True)
class Series:
    label: str
    kind: str  # class: allocated, share, used, busy
    value: Value


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Chart:
    id: str
    title: str
    unit: str
    lines: tuple[Line, ...]
    top: str  # the value at the upper edge
    begins: str
    ends: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # time, and the value of each line
    is_known: bool  # False: nobody has looked in all that time


def chart(id_: str, title: str, unit: str, points: Points, lines: Sequence[Series]) -> Chart:
    values = [[_value(line.value, sample) for sample in points.values] for line in lines]
    known = [value for line in values for value in line if value is not None]
    most = max(known, default=0) * _ROOM or 1.0
    if unit == "%":
        most = 100.0  # a little of it has to look like a little
    return Chart(
        id=id_,
        title=title,
        unit=unit,
        lines=tuple(
            Line(line.label, line.kind, _path(found, most))
            for line, found in zip(lines, values, strict=True)
        ),
        top=_number(most),
        begins=_time(points, 0),
        ends=f"{_time(points, len(points.values))} UTC",
        rows=tuple(_rows(points, values)),
        is_known=bool(known),
    )


def _value(value: Value, sample: Sample | None) -> float | None:
    return None if sample is None else value(sample)


def _path(values: Sequence[float | None], most: float) -> str:
    """Steps: a value holds for its stretch of time."""
    wide = WIDTH / max(1, len(values))
    parts, was_known = [], False
    for index, value in enumerate(values):
        if value is not None:
            y = f"{HEIGHT * (1 - value / most):.1f}"
            parts.append(f"V{y}" if was_known else f"M{index * wide:.1f} {y}")
            parts.append(f"H{(index + 1) * wide:.1f}")
        was_known = value is not None
    return "".join(parts)


def _rows(
    points: Points, values: Sequence[Sequence[float | None]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A few rows, each the average of what is known of its time."""
    each = -(-len(points.values) // _MOST_ROWS) or 1
    for begin in range(0, len(points.values), each):
        yield (
            _time(points, begin),
            tuple(_average(line[begin : begin + each]) for line in values),
        )


def _average(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return _number(sum(known) / len(known)) if known else "–"


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _time(points: Points, index: int) -> str:
    at = datetime.datetime.fromtimestamp(points.since_s + points.step_s * index, datetime.UTC)
    is_long = points.step_s * len(points.values) > _LONG_S
    return at.strftime("%m-%d %H:%M" if is_long else "%H:%M")
