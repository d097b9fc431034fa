"""A report as one HTML page that needs nothing else: charts are SVG, without script. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape

from gpupool.cli.durations import words
from gpupool.cli.report_view import NO_COMMAND, Report, gib, hours, percent, shown_parts
from gpupool.history.reader import Points
from gpupool.history.samples import Sample
from gpupool.history.usage import Usage, total_of

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 960, 240, 48, 24, 10
_BAR, _NAMES = 26, 240
_MOST_BARS = 40

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --faint: #667085; --page: #fff; --line: #d9dee7;
  --have: #e3e7ee; --given: #7aa7f0; --used: #1f9d61; --asked: #98a2b3; --warn: #b54708; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --faint: #98a2b3; --page: #14181f;
  --line: #303846; --have: #2a3140; --given: #3f6fc4; --used: #36c282; --asked: #667085;
  --warn: #f0a35e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; color: var(--faint); } svg { width: 100%; height: auto; display: block; }
text { fill: var(--faint); font-size: 12px; } .name { fill: var(--ink); }
table { border-collapse: collapse; width: 100%; } div.wide { overflow-x: auto; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
th { color: var(--faint); font-weight: 600; } code { font-size: 13px; color: var(--faint);
  display: block; white-space: normal; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 2rem; margin: 1rem 0; }
.figures b { display: block; font-size: 1.6rem; } .low { color: var(--warn); }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
.key .have { background: var(--have); } .key .given { background: var(--given); }
.key .used { background: var(--used); } .key .asked { border: 1px solid var(--asked); }
svg { min-width: 640px; } tr.total td { font-weight: 600; }
"""


def html_text(report: Report) -> str:
    title = f"GPU usage by {report.by}, last {words(report.asked_s)}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>From {_time(report.since_s)} to {_time(report.until_s)}.</p>",
        _figures(report),
        "<h2>Cards over time</h2>",
        _key(("have", "existing"), ("given", "given to pods"), ("used", "used")),
        _chart(report.points),
        "<p>Where nothing is drawn, nobody looked.</p>",
        f"<h2>GPU-hours by {escape(report.by)}</h2>",
        _key(("asked", "asked for"), ("given", "given"), ("used", "used")),
        _bars(report.rows[:_MOST_BARS]),
        _usage_table(report),
        _idle(report),
        _advice(report),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    body = "".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'


def _time(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"


def _figures(report: Report) -> str:
    total = report.cluster or Sample()
    given = 100 * total.given / total.have if total.have else None
    used = 100 * total.used / total.told if total.told else None
    seen = 100 * total.seen / 1000 / max(1, report.until_s - report.since_s)
    shown = (
        (hours(total.have / 3.6e6), "GPU-hours existed"),
        (percent(given), "of them given to pods"),
        (percent(used), "of the cards' time used"),
        (f"{sum(pod.held_cards for pod in report.idle):.1f}", "GPUs held by idle pods now"),
        (f"{min(seen, 100):.0f}%", "of the time is known"),
    )
    return f'<div class="figures">{"".join(f"<div><b>{a}</b>{b}</div>" for a, b in shown)}</div>'


def _key(*entries: tuple[str, str]) -> str:
    spans = (f'<span class="{name}"></span>{text}' for name, text in entries)
    return f'<p class="key">{"".join(spans)}</p>'


def _chart(points: Points) -> str:
    """Areas of existing, given and used cards. Where nobody looked, there is nothing."""
    known = [point for point in points.values if point is not None]
    most = max((point.have / point.seen for point in known), default=0.0)
    if not known or not most:
        return "<p>Nothing is known of this time.</p>"
    step = (_WIDTH - _LEFT) / max(len(points.values), 1)
    scale = (_HEIGHT - _TOP - _BOTTOM) / most

    def area(name: str, value: Callable[[Sample], float]) -> str:
        paths = []
        for begin, run in _runs(points.values):
            tops = "".join(
                f"H{_LEFT + (begin + n) * step:.1f}V{_HEIGHT - _BOTTOM - value(p) * scale:.1f}"
                for n, p in enumerate(run)
            )
            x, end = _LEFT + begin * step, _LEFT + (begin + len(run)) * step
            floor = _HEIGHT - _BOTTOM
            paths.append(f"M{x:.1f} {floor}{tops}H{end:.1f}V{floor}Z")
        return f'<path fill="var(--{name})" d="{"".join(paths)}"/>'

    areas = (
        area("have", lambda point: point.have / point.seen),
        area("given", lambda point: point.given / point.seen),
        area("used", lambda point: point.used / point.seen),
    )
    until = points.since_s + points.step_s * len(points.values)
    labels = [
        f'<text x="{_LEFT - 6}" y="{_TOP + 10}" text-anchor="end">{most:.0f}</text>',
        f'<text x="{_LEFT - 6}" y="{_HEIGHT - _BOTTOM}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{_time(points.since_s)}</text>',
        f'<text x="{_WIDTH}" y="{_HEIGHT - 6}" text-anchor="end">{_time(until)}</text>',
    ]
    return _svg(_HEIGHT, "Cards over time", "".join((*areas, *labels)))


def _runs(values: Sequence[Sample | None]) -> Iterator[tuple[int, list[Sample]]]:
    """Stretches of known points, and where they begin."""
    run: list[Sample] = []
    for at, value in enumerate((*values, None)):
        if value is not None:
            run.append(value)
        elif run:
            yield at - len(run), run
            run = []


def _bars(rows: Sequence[Usage]) -> str:
    most = max((max(row.asked, row.given, row.used) for row in rows), default=0.0)
    if not most:
        return "<p>No pod had a card.</p>"
    scale = (_WIDTH - _NAMES - 70) / most
    parts = []
    for n, row in enumerate(rows):
        y = n * _BAR + 4
        bars = (("asked", row.asked, 16), ("given", row.given, 16), ("used", row.used, 8))
        for name, value, high in bars:
            fill = "none" if name == "asked" else f"var(--{name})"
            top = y + (16 - high) / 2
            parts.append(
                f'<rect x="{_NAMES}" y="{top}" width="{max(value * scale, 0.5):.1f}" '
                f'height="{high}" fill="{fill}" stroke="var(--{name})"/>'
            )
        name = row.name if len(row.name) <= 34 else f"{row.name[:33]}…"
        longest = max(row.asked, row.given, row.used)
        parts.append(
            f'<text class="name" x="{_NAMES - 8}" y="{y + 13}" text-anchor="end">{escape(name)}'
            f'</text><text x="{_NAMES + longest * scale + 6:.1f}" y="{y + 13}">'
            f"{percent(row.used_percent)}</text>"
        )
    return _svg(len(rows) * _BAR + 8, "GPU-hours", "".join(parts))


def _svg(height: float, title: str, body: str) -> str:
    box = f"0 0 {_WIDTH} {height}"
    drawn = f'<svg viewBox="{box}" role="img" aria-label="{escape(title)}">{body}</svg>'
    return f'<div class="wide">{drawn}</div>'


def _table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], texts: int, *, sums: bool = False
) -> str:
    """`texts`: so many columns from the left are no numbers. Cells are HTML. `sums`: the last row
    is the total."""

    def cells(row: Sequence[str], tag: str) -> str:
        kinds = (' class="text"' if at < texts else "" for at in range(len(row)))
        return "".join(f"<{tag}{a}>{cell}</{tag}>" for a, cell in zip(kinds, row, strict=True))

    heavy = len(rows) - 1 if sums else -1
    kinds = (' class="total"' if at == heavy else "" for at in range(len(rows)))
    lines = "".join(f"<tr{k}>{cells(row, 'td')}</tr>" for k, row in zip(kinds, rows, strict=True))
    return f'<div class="wide"><table><tr>{cells(titles, "th")}</tr>{lines}</table></div>'


def _usage_table(report: Report) -> str:
    titles = (report.by, "asked", "given", "used", "used %", "idle", "unknown", "GiB-hours", "peak")
    rows = []
    for row in (*report.rows, replace(total_of(report.rows), name="total")):
        share = percent(row.used_percent)
        low = row.used_percent is not None and row.used_percent < 10
        given, used, idle, unknown = shown_parts(row)
        marked = f'<span class="low">{share}</span>' if low else share
        figures = (hours(row.asked), given, used, marked, idle, unknown)
        memory = (hours(row.memory_given_gib_h), gib(row.peak_mib))
        rows.append((escape(row.name), *figures, *memory))
    return _table(titles, rows, 1, sums=True)


def _idle(report: Report) -> str:
    if not report.idle:
        return ""
    rows = [
        (
            escape(f"{pod.namespace}/{pod.pod}"),
            escape(pod.workload),
            escape(pod.user or "unknown"),
            f"{pod.held_cards:.2g}",
            "never" if pod.active_s is None else _time(pod.active_s),
        )
        for pod in report.idle
    ]
    titles = ("pod", "workload", "user", "GPUs", "last used")
    return f"<h2>Idle pods that hold cards</h2>{_table(titles, rows, 3)}"


def _advice(report: Report) -> str:
    if not report.advice:
        return ""
    rows = [
        (
            escape(f"{each.namespace}/{each.workload}"),
            f"{escape(each.words)}<code>{escape(each.command or NO_COMMAND)}</code>",
        )
        for each in report.advice
    ]
    titles = ("workload", "what would be enough, and the command")
    return f"<h2>Workloads that could do with less</h2>{_table(titles, rows, 2)}"
