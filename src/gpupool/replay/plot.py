"""Curves as an SVG picture: a panel for each quantity, a colour for each policy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from gpupool.replay.figures import Curve

_WIDTH, _HEIGHT = 760, 340  # of a panel, without the names of its curves
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 44, 48
_LETTER = 7  # so wide is one at most, in the mean of a name
_MOST_POINTS = 600
_COLOURS = ("#0b6e4f", "#c1440e", "#2b59c3", "#8a5a00", "#7b2cbf", "#555555")
_TICKS = 6
_ROUND = (1, 2, 2.5, 5, 10, 20)  # the last one: a logarithm may be a little too small


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]


def svg_of(panels: Sequence[Panel]) -> str:
    longest = max((len(curve.label) for panel in panels for curve in panel.curves), default=0)
    width, height = _WIDTH + _LETTER * longest, _HEIGHT * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for at, panel in enumerate(panels):
        parts.append(f'<g transform="translate(0 {at * _HEIGHT})">')
        parts += _panel(panel)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round numbers, at most _TICKS steps apart."""
        least = (self.high - self.low) / _TICKS
        power = 10.0 ** math.floor(math.log10(least))
        step = next(power * times for times in _ROUND if power * times >= least)
        # Counted in steps: sums of fractions would miss the last one.
        first, last = math.ceil(self.low / step), math.floor(self.high / step + 1e-9)
        return [step * at for at in range(first, last + 1)]


def _scale(values: Sequence[float], begin: float, end: float) -> _Scale:
    low, high = min(0.0, *values), max(values)
    return _Scale(low, high if high > low else low + 1, begin, end)


def _panel(panel: Panel) -> list[str]:
    curves = [_thinned(curve) for curve in panel.curves if curve.x]
    if not curves:
        return [f'<text x="{_LEFT}" y="24">{escape(panel.title)}: nothing to show</text>']
    x = _scale([v for curve in curves for v in curve.x], _LEFT, _WIDTH - _RIGHT)
    y = _scale([v for curve in curves for v in curve.y], _HEIGHT - _BOTTOM, _TOP)
    return [
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="bold">{escape(panel.title)}</text>',
        *_axes(x, y, panel),
        *_lines(curves, x, y),
    ]


def _axes(x: _Scale, y: _Scale, panel: Panel) -> list[str]:
    parts = []
    for tick in y.ticks():
        at = f"{y(tick):.1f}"
        parts.append(f'<path d="M{_LEFT} {at}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at}" text-anchor="end">{tick:.4g}</text>')
    for tick in x.ticks():
        at = f"{x(tick):.1f}"
        parts.append(
            f'<text x="{at}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{tick:.4g}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) // 2
    parts.append(
        f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(panel.x_label)}</text>'
    )
    parts.append(f'<text x="{_LEFT}" y="{_TOP - 8}">{escape(panel.y_label)}</text>')
    return parts


def _lines(curves: Sequence[Curve], x: _Scale, y: _Scale) -> list[str]:
    """The names stand to the right of all lines, which may be anywhere."""
    parts = []
    for at, curve in enumerate(curves):
        colour = _COLOURS[at % len(_COLOURS)]
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(curve.x, curve.y, strict=True))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 12}" y="{_TOP + 12 + 18 * at}" fill="{colour}">'
            f"{escape(curve.label)}</text>"
        )
    return parts


def _thinned(curve: Curve) -> Curve:
    """Reduce the curve to as many points as a plot can show, with the last one."""
    step = max(1, len(curve.x) // _MOST_POINTS)
    if step == 1:
        return curve
    return Curve(
        curve.label,
        (*curve.x[::step], curve.x[-1]),
        (*curve.y[::step], curve.y[-1]),
    )
